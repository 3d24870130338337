/** Who asks, and what they may do. What the scope does not allow is not offered. */
import { queryOptions, useQuery, useQueryClient } from "@tanstack/react-query";
import { ApiError, body, json } from "./client";

export type Scope = "read" | "run" | "admin";
const ORDER: readonly Scope[] = ["read", "run", "admin"];

export interface Session {
  name: string;
  scope: Scope;
  /** The server lets everyone in: there is nothing to sign out from. */
  is_open: boolean;
  /** The server is `penstock ui` on this machine, beside the files of a project. */
  is_local: boolean;
  /** The folder of that project. */
  root: string | null;
  server: string;
  version: string;
}

export function allows(scope: Scope, wanted: Scope): boolean {
  return ORDER.indexOf(scope) >= ORDER.indexOf(wanted);
}

/** Null when a sign-in is needed. */
export const sessionQuery = queryOptions({
  queryKey: ["session"],
  queryFn: async (): Promise<Session | null> => {
    try {
      return await json<Session>("/api/session");
    } catch (error) {
      if (error instanceof ApiError && error.status === 401) return null;
      throw error;
    }
  },
  staleTime: 5 * 60_000,
});

export interface UsedSession {
  session: Session | null;
  /** Whether the scope includes this one; false as long as nothing is known. */
  can: (scope: Scope) => boolean;
}

export function useSession(): UsedSession {
  const { data } = useQuery(sessionQuery);
  const session = data ?? null;
  return { session, can: (scope) => session !== null && allows(session.scope, scope) };
}

export function useSignIn(): (token: string) => Promise<void> {
  const queries = useQueryClient();
  return async (token) => {
    await json("/api/session", body({ token }));
    queries.clear();
  };
}

export function useSignOut(): () => Promise<void> {
  const queries = useQueryClient();
  return async () => {
    await json("/api/session", { method: "DELETE" });
    queries.clear();
  };
}

/**
 * `penstock ui` opens `/#token=…`. What is behind `#` is not sent to any server and not in any log; it is taken out of the address
 * before anything else happens, so that it is not in the history of the browser either.
 */
export async function signInFromAddress(): Promise<void> {
  const token = new URLSearchParams(location.hash.slice(1)).get("token");
  if (!token) return;
  history.replaceState(null, "", location.pathname + location.search);
  await json("/api/session", body({ token })).catch(() => undefined);
}
