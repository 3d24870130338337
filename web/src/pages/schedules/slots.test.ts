import { describe, expect, it } from "vitest";
import { signatureOf } from "./hook";
import type { Schedule, Slot } from "./queries";
import { healthOf, nameProblem, stateOfSlot, troubleOf, wordOfSlot } from "./slots";

const slot = (change: Partial<Slot>): Slot => ({
  slot: "2026-01-01T00:00:00Z",
  state: "started",
  status: "completed",
  run: "r",
  note: null,
  attempt: 1,
  backfill: null,
  is_late: false,
  ...change,
});

describe("slots", () => {
  it("has the state of its run, or of what became of it", () => {
    expect(stateOfSlot(slot({ status: "failed" }))).toBe("failed");
    expect(stateOfSlot(slot({ run: null, state: "missed" }))).toBe("interrupted");
    expect(wordOfSlot(slot({ run: null, state: "missed" }))).toBe("Missed");
    expect(wordOfSlot(slot({}))).toBeNull();
  });

  it("counts what went wrong", () => {
    expect(
      healthOf([
        slot({ run: null, state: "missed", status: "missed" }),
        slot({ status: "failed" }),
        slot({ is_late: true }),
      ]),
    ).toEqual({
      missed: 1,
      failed: 1,
      late: 1,
    });
  });
});

describe("troubleOf", () => {
  const schedule = { last_error: null, late: [], waiting: 0 } as unknown as Schedule;
  it("says the worst first", () => {
    expect(troubleOf(schedule)).toBeNull();
    expect(troubleOf({ ...schedule, waiting: 2 })).toEqual({ tone: "waiting", text: "2 waiting" });
    expect(troubleOf({ ...schedule, waiting: 2, late: ["x"] })?.text).toBe("late");
    expect(troubleOf({ ...schedule, late: ["x"], last_error: "no such document" })?.tone).toBe("failed");
  });
});

describe("nameProblem", () => {
  it("takes slugs that are free", () => {
    expect(nameProblem("nightly-2", [])).toBeNull();
    expect(nameProblem("nightly", ["nightly"])).toContain("already");
    for (const name of ["", "a b", "-x", "a/b"]) expect(nameProblem(name, [])).not.toBeNull();
  });
});

describe("signatureOf", () => {
  it("is what GitHub sends", async () => {
    // The example of GitHub's documentation.
    expect(await signatureOf("It's a Secret to Everybody", "Hello, World!")).toBe(
      "sha256=757107ea0eb2509fc211221cce984b8a37570b6d7586c22c46f4379c8b043e17",
    );
  });
});
