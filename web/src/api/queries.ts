import { QueryClient } from "@tanstack/react-query";
import { ApiError } from "./client";

export function createQueries(): QueryClient {
  return new QueryClient({
    defaultOptions: {
      queries: {
        // News comes by the stream; what was asked for a moment ago need not be asked for again when a page is shown again.
        staleTime: 10_000,
        refetchOnWindowFocus: false,
        // A refusal stays one. A server that does not answer is asked again, for about ten seconds.
        retry: (count, error) => count < 4 && !(error instanceof ApiError && error.status < 500),
        retryDelay: (count) => Math.min(500 * 2 ** count, 4000),
      },
      mutations: { retry: false },
    },
  });
}
