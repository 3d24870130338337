/**
 * The API, typed by its OpenAPI document.
 *
 *     const { runs } = await answered(api.GET("/api/executions", { params: { query: { limit: 50 } } }));
 *
 * Whatever is not a success is thrown: ApiError when the server said no, Unreachable when it said nothing.
 */
import createClient from "openapi-fetch";
import { connection } from "./connection";
import { ApiError, Unreachable } from "./errors";
import type { paths } from "./schema";

export { ApiError, type Problem, Unreachable } from "./errors";

type OnSignedOut = () => void;
let onSignedOut: OnSignedOut = () => undefined;

/** What happens when the server wants a sign-in; the router sets it. */
export function whenSignedOut(then: OnSignedOut) {
  onSignedOut = then;
}

async function ask(request: Request): Promise<Response> {
  let answer: Response;
  try {
    answer = await fetch(request, { credentials: "same-origin" });
  } catch (reason) {
    if (request.signal.aborted) throw reason;
    connection.unreachable();
    throw new Unreachable();
  }
  // A proxy (in development: Vite's) answers for a server that is gone.
  if (answer.status === 502 || answer.status === 504) {
    connection.unreachable();
    throw new Unreachable();
  }
  connection.answered();
  if (!answer.ok) {
    const error = ApiError.of(answer.status, await answer.json().catch(() => null));
    if (error.status === 401 && !request.url.endsWith("/api/session")) onSignedOut();
    throw error;
  }
  return answer;
}

// In a browser the address of the page; a fixed one makes requests valid in tests, too.
const here = typeof location === "undefined" || location.origin === "null" ? "http://localhost" : location.origin;

export const api = createClient<paths>({ baseUrl: here, fetch: ask });

/** The body of a successful answer. */
export async function answered<T>(asking: Promise<{ data?: T; response: Response }>): Promise<T> {
  return (await asking).data as T;
}

/** For addresses that are not JSON, or not described: the response as it is, with the same errors. */
export function fetched(path: string, init?: RequestInit): Promise<Response> {
  return ask(new Request(new URL(path, here), init));
}

/** JSON from an address that the OpenAPI document does not describe. */
export async function json<T>(path: string, init?: RequestInit): Promise<T> {
  const answer = await fetched(path, init);
  return (answer.status === 204 ? undefined : await answer.json()) as T;
}

/** What a write sends. */
export function body(value: unknown, method: "POST" | "PUT" | "PATCH" | "DELETE" = "POST"): RequestInit {
  return { method, headers: { "content-type": "application/json" }, body: JSON.stringify(value) };
}
