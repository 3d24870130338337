import { describe, expect, it } from "vitest";
import { findCause } from "./cause";
import { log, made } from "./made";
import { EventPages } from "./pages";

describe("the cause of an event", () => {
  it("is found nearby", async () => {
    const { load, asked } = log(() => 100_000);
    const found = await findCause(made(50_000, { cause: "r/s@0:49900" }), new EventPages(load), load);
    expect(found?.seq).toBe(49_900);
    expect(asked).toHaveLength(1);
  });

  it("is found far away, by the place in its name", async () => {
    const { load } = log(() => 100_000);
    const asked: unknown[] = [];
    const found = await findCause(made(50_000, { cause: "r/s@0:3" }), new EventPages(load), (request) => {
      asked.push(request.filter.place);
      return load(request);
    });
    expect(found?.seq).toBe(3);
    expect(asked).toEqual(["", "", "", "", "s@0"]);
  });

  it("is taken from the pages that are there", async () => {
    const { load, asked } = log(() => 1000);
    const pages = new EventPages(load);
    await pages.one(1);
    expect((await findCause(made(900, { cause: "r/s@0:7" }), pages, load))?.seq).toBe(7);
    expect(asked).toHaveLength(1);
  });

  it("may not be there", async () => {
    const { load } = log(() => 1000);
    expect(await findCause(made(900, { cause: "r/gone:7" }), new EventPages(load), load)).toBeNull();
    expect(await findCause(made(900), new EventPages(load), load)).toBeNull();
  });
});
