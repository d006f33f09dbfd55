import { QueryCache, QueryClient } from "@tanstack/react-query";

import { Problem } from "./problem";

/** The query client of the console. An expired login leads to the sign-in page. */
export function newQueries(): QueryClient {
  const queries = new QueryClient({
    queryCache: new QueryCache({
      onError: (error, query) => {
        if (query.queryKey[0] !== "session" && error instanceof Problem && error.status === 401) {
          queries.setQueryData(["session"], null);
        }
      },
    }),
    defaultOptions: {
      queries: { retry: mayHelp, retryDelay: 1000, staleTime: 2_000 },
    },
  });
  return queries;
}

/** Client errors are not retried. */
function mayHelp(failures: number, error: Error): boolean {
  return failures < 2 && !(error instanceof Problem && error.status < 500);
}
