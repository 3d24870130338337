/** The run as it is now, whatever moment is shown. */
import { useQuery } from "@tanstack/react-query";
import { answered, api } from "@/api/client";
import { useRunPage } from "../context";

export interface RunNow {
  status: string;
  failedIterations: number;
}

export function useHeader(): RunNow | undefined {
  const { run, moment } = useRunPage();
  const { data } = useQuery({
    queryKey: ["run", run, "header", moment?.status, moment?.is_live],
    queryFn: ({ signal }) => answered(api.GET("/api/executions/{run}/header", { params: { path: { run } }, signal })),
    placeholderData: (before) => before,
    enabled: moment !== undefined,
  });
  if (moment === undefined) return undefined;
  if (data === undefined) return { status: moment.status, failedIterations: 0 };
  return { status: data.crashed ? "crashed" : data.status, failedIterations: data.failed_iterations };
}
