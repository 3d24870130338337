import { useMutation, useQueryClient } from "@tanstack/react-query";
import { useState } from "react";
import { answered, api } from "@/api/client";
import type { Run } from "@/live";
import { Confirm, plural, toast, toastError } from "@/ui";
import { canCancel, canResume, statusOf } from "./rows";

type Asking = (run: Run) => Promise<unknown>;

const cancelling: Asking = (run) =>
  answered(
    api.POST("/api/executions/{run}/cancel", {
      params: { path: { run: run.execution_id } },
      body: { reason: "cancelled on the page" },
    }),
  );

const resuming: Asking = (run) =>
  answered(
    api.POST("/api/executions/{run}/resume", {
      params: { path: { run: run.execution_id } },
      // A job that completed although iterations failed runs these again.
      body: { failed: statusOf(run) === "completed" },
    }),
  );

/** Asks for each of them, and says what came of it: that one is refused does not stop the others. */
function useEach(ask: Asking, done: (count: number) => string) {
  const queries = useQueryClient();
  return useMutation({
    mutationFn: async (runs: readonly Run[]) => {
      const told = await Promise.allSettled(runs.map(ask));
      const failed = told.filter((one) => one.status === "rejected");
      for (const one of failed.slice(0, 3)) toastError(one.reason);
      if (failed.length < runs.length) toast("done", done(runs.length - failed.length));
    },
    onSettled: () => queries.invalidateQueries({ queryKey: ["runs"] }),
  });
}

export interface RunActions {
  cancel: (runs: readonly Run[]) => void;
  resume: (runs: readonly Run[]) => void;
  isBusy: boolean;
  /** To be put into the page: it asks before runs are cancelled. */
  dialog: React.ReactNode;
}

export function useRunActions(whenDone: () => void): RunActions {
  const [asked, setAsked] = useState<readonly Run[]>([]);
  const cancel = useEach(cancelling, (count) => `${plural(count, "run")} will be cancelled`);
  const resume = useEach(resuming, (count) => `${plural(count, "run")} will go on`);
  const first = asked[0];
  return {
    cancel: (runs) => setAsked(runs.filter(canCancel)),
    resume: (runs) => resume.mutate(runs.filter(canResume), { onSuccess: whenDone }),
    isBusy: cancel.isPending || resume.isPending,
    dialog: (
      <Confirm
        isOpen={asked.length > 0}
        onClose={() => setAsked([])}
        title={
          asked.length === 1 && first !== undefined ? `Cancel ${first.name}?` : `Cancel ${plural(asked.length, "run")}?`
        }
        verb={asked.length === 1 ? "Cancel the run" : `Cancel ${plural(asked.length, "run")}`}
        isDangerous
        isBusy={cancel.isPending}
        onConfirm={() =>
          cancel.mutate(asked, {
            onSuccess: whenDone,
            onSettled: () => setAsked([]),
          })
        }
      >
        <p>Work in progress is stopped, and a cancelled run cannot be resumed.</p>
      </Confirm>
    ),
  };
}
