/** Cancel, resume, replay, run again: each asks for what it needs, and says what came of it. */
import { useMutation, useQuery, useQueryClient } from "@tanstack/react-query";
import { useNavigate } from "@tanstack/react-router";
import { lazy, Suspense, useState } from "react";
import { answered, api } from "@/api/client";
import { ApiError } from "@/api/errors";
import { useSession } from "@/api/session";
import { chunk } from "@/chunks";
import {
  Button,
  Checkbox,
  counted,
  Dialog,
  ErrorState,
  Field,
  Icon,
  Input,
  Loading,
  Menu,
  Prose,
  plural,
  sentence,
  toast,
} from "@/ui";
import { useRunPage } from "../context";
import { offered } from "./facts";
import { useHeader } from "./useHeader";

const RunAgain = lazy(chunk(() => import("./RunAgain")));

type Asked = "cancel" | "resume" | "replay" | "again";

export function RunActions() {
  const { can } = useSession();
  const { run, moment } = useRunPage();
  const navigate = useNavigate();
  const [asked, setAsked] = useState<Asked | null>(null);
  const now = useHeader();
  if (moment === undefined || now === undefined) return null;
  const failed = now.failedIterations;
  const may = offered(now.status, failed);
  const close = () => setAsked(null);
  const compare = () => void navigate({ to: "/compare", search: { left: moment.execution_id } });
  if (!can("run")) {
    return (
      <Button icon="compare" size="small" onClick={compare}>
        Compare
      </Button>
    );
  }
  return (
    <>
      {may.cancel && (
        <Button icon="cancelled" size="small" onClick={() => setAsked("cancel")}>
          Cancel
        </Button>
      )}
      {may.resume && (
        <Button icon="resume" size="small" look="primary" onClick={() => setAsked("resume")}>
          Resume
        </Button>
      )}
      <Button icon="play" size="small" onClick={() => setAsked("again")}>
        Run again
      </Button>
      <Menu
        label="More"
        size="small"
        icon="more"
        align="end"
        items={[
          { label: "Replay and compare", icon: "refresh", onSelect: () => setAsked("replay") },
          { label: "Compare with another run", icon: "compare", onSelect: compare },
        ]}
      />
      {asked === "cancel" && <Cancel run={run} onClose={close} />}
      {asked === "resume" && <Resume run={run} failed={failed} choice={may.failedOnly} onClose={close} />}
      {asked === "replay" && <Replay run={run} events={moment.last_seq} onClose={close} />}
      {asked === "again" && (
        <Suspense fallback={null}>
          <RunAgain run={run} onClose={close} />
        </Suspense>
      )}
    </>
  );
}

/** What the server said no to, in the dialog in which it was asked. */
export function Refused({ error }: { error: Error | null }) {
  if (error === null) return null;
  const hint = error instanceof ApiError ? error.hint : null;
  return (
    <div className="run-refused" role="alert">
      <Icon name="error" />
      <div>
        <Prose text={sentence(error.message)} />
        {hint !== null && (
          <p className="quiet">
            <Prose text={sentence(hint)} />
          </p>
        )}
      </div>
    </div>
  );
}

function useChanged(run: string): () => void {
  const queries = useQueryClient();
  return () => {
    void queries.invalidateQueries({ queryKey: ["run", run] });
    void queries.invalidateQueries({ queryKey: ["runs"] });
  };
}

function Cancel({ run, onClose }: { run: string; onClose: () => void }) {
  const [reason, setReason] = useState("");
  const changed = useChanged(run);
  const { mutate, isPending, error } = useMutation({
    mutationFn: () =>
      answered(
        api.POST("/api/executions/{run}/cancel", {
          params: { path: { run } },
          body: reason.trim() === "" ? { reason: "cancelled on the page" } : { reason: reason.trim() },
        }),
      ),
    onSuccess: (answer) => {
      toast("done", "The run is being cancelled", `it was ${answer.status} at event ${counted(answer.seq)}`);
      changed();
      onClose();
    },
  });
  return (
    <Dialog
      isOpen
      onClose={onClose}
      title="Cancel this run?"
      size="small"
      actions={
        <>
          <Button onClick={onClose}>Back</Button>
          <Button look="danger" type="submit" form="run-cancel" isBusy={isPending}>
            Cancel the run
          </Button>
        </>
      }
    >
      <form
        id="run-cancel"
        className="run-dialog"
        onSubmit={(event) => {
          event.preventDefault();
          mutate();
        }}
      >
        <p>What is under way is stopped, nothing more begins, and the run cannot be resumed.</p>
        <Field label="Reason" hint="It is written into the log.">
          {(control) => (
            <Input
              {...control}
              autoFocus
              value={reason}
              maxLength={2000}
              onChange={(event) => setReason(event.target.value)}
            />
          )}
        </Field>
        <Refused error={error} />
      </form>
    </Dialog>
  );
}

interface ResumeProps {
  run: string;
  failed: number;
  choice: "no" | "choice" | "only";
  onClose: () => void;
}

function Resume({ run, failed, choice, onClose }: ResumeProps) {
  const page = useRunPage();
  const changed = useChanged(run);
  const [isFailedOnly, setFailedOnly] = useState(choice === "only");
  const { mutate, isPending, error } = useMutation({
    mutationFn: () =>
      answered(api.POST("/api/executions/{run}/resume", { params: { path: { run } }, body: { failed: isFailedOnly } })),
    onSuccess: (answer) => {
      toast("done", "The run goes on", `what comes after event ${counted(answer.seq)} belongs to it`);
      page.goTo(null);
      changed();
      onClose();
    },
  });
  return (
    <Dialog
      isOpen
      onClose={onClose}
      title="Resume this run?"
      size="small"
      actions={
        <>
          <Button onClick={onClose}>Back</Button>
          <Button look="primary" isBusy={isPending} onClick={() => mutate()} autoFocus>
            Resume
          </Button>
        </>
      }
    >
      <div className="run-dialog">
        <p>
          {choice === "only"
            ? `The run completed, and ${plural(failed, "iteration")} of it failed. These run again, with what follows from them.`
            : "What was done stays done. What failed, was interrupted or has not begun runs, with the document that the run is pinned to."}
        </p>
        {choice === "choice" && (
          <Checkbox
            label={`Only the ${plural(failed, "iteration")} that failed`}
            checked={isFailedOnly}
            onChange={(event) => setFailedOnly(event.target.checked)}
          />
        )}
        <Refused error={error} />
      </div>
    </Dialog>
  );
}

function Replay({ run, events, onClose }: { run: string; events: number; onClose: () => void }) {
  const replay = useQuery({
    queryKey: ["run", run, "replay", events],
    queryFn: ({ signal }) => answered(api.POST("/api/executions/{run}/replay", { params: { path: { run } }, signal })),
    staleTime: 0,
    gcTime: 0,
    retry: false,
  });
  const { data, error, isFetching, refetch } = replay;
  return (
    <Dialog isOpen onClose={onClose} title="Replay" actions={<Button onClick={onClose}>Close</Button>}>
      <div className="run-dialog">
        <p className="quiet">
          Every decision is made again from the outcomes that were recorded, and compared with the log. Nothing runs.
        </p>
        {isFetching && data === undefined ? (
          <Loading rows={2} label={`Deciding ${plural(events, "event")} again`} />
        ) : error !== null ? (
          <ErrorState error={error} onRetry={() => void refetch()} />
        ) : data?.status === "same" ? (
          <p className="run-replay ui-ink-ok">
            <Icon name="ok" /> The same decisions, {counted(data.events)} events.
          </p>
        ) : (
          data !== undefined && (
            <>
              <p className="run-replay ui-ink-failed">
                <Icon name="failed" /> The decisions differ from those in the log.
              </p>
              {data.difference !== null && <pre className="run-difference">{data.difference}</pre>}
            </>
          )
        )}
      </div>
    </Dialog>
  );
}
