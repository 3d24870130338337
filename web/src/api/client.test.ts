import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { ApiError, answered, api, Unreachable, whenSignedOut } from "./client";
import { connection } from "./connection";
import { allows } from "./session";

function server(answer: () => Response | Promise<Response>) {
  vi.stubGlobal("fetch", vi.fn(answer));
}

const listing = () => answered(api.GET("/api/executions", {}));
const refused = (status: number, error: object) => () => Response.json({ error }, { status });

beforeEach(() => connection.answered());
afterEach(() => vi.unstubAllGlobals());

describe("the client", () => {
  it("gives the body of a success", async () => {
    server(() => Response.json({ runs: [], next: null }));
    expect(await listing()).toEqual({ runs: [], next: null });
  });

  it("throws what the server says", async () => {
    const problems = [{ where: "query.limit", message: "it must be 1 or more" }];
    server(refused(422, { code: "invalid", message: "the request is not valid", hint: "less", problems }));
    const error = await listing().catch((reason: unknown) => reason);
    expect(error).toBeInstanceOf(ApiError);
    expect(error).toMatchObject({
      status: 422,
      code: "invalid",
      message: "the request is not valid",
      hint: "less",
      problems,
    });
  });

  it("makes do with an answer that is not ours", async () => {
    server(() => new Response("<h1>Teapot</h1>", { status: 418 }));
    await expect(listing()).rejects.toMatchObject({ status: 418, code: "unknown" });
  });

  it("says that the server went away, until it answers again", async () => {
    server(() => Promise.reject(new TypeError("Failed to fetch")));
    await expect(listing()).rejects.toBeInstanceOf(Unreachable);
    expect(connection.get().isReachable).toBe(false);
    server(() => new Response("", { status: 502 }));
    await expect(listing()).rejects.toBeInstanceOf(Unreachable);
    server(refused(404, { code: "not_found", message: "no", hint: null }));
    await expect(listing()).rejects.toBeInstanceOf(ApiError);
    expect(connection.get().isReachable).toBe(true);
  });

  it("leads to the sign-in when one is needed", async () => {
    let count = 0;
    whenSignedOut(() => {
      count += 1;
    });
    server(refused(401, { code: "unauthenticated", message: "this needs a token", hint: null }));
    await expect(listing()).rejects.toBeInstanceOf(ApiError);
    expect(count).toBe(1);
  });
});

it("scopes include those before them", () => {
  expect(allows("admin", "run")).toBe(true);
  expect(allows("run", "run")).toBe(true);
  expect(allows("read", "run")).toBe(false);
});
