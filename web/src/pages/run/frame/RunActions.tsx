/** Cancel, resume, replay, run again: each asks for what it needs, and says what came of it. */
import { useQuery, useQueryClient } from "@tanstack/react-query";
import { useNavigate } from "@tanstack/react-router";
import { lazy, Suspense, useState } from "react";
import { answered, api } from "@/api/client";
import { useSession } from "@/api/session";
import { chunk } from "@/chunks";
import {
  Button,
  Checkbox,
  counted,
  Dialog,
  ErrorState,
  Field,
  FormDialog,
  Icon,
  Input,
  Loading,
  Menu,
  plural,
  toast,
  useSending,
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
  const sending = useSending();

  async function cancel() {
    const body = { reason: reason.trim() || "cancelled on the page" };
    const answer = await answered(api.POST("/api/executions/{run}/cancel", { params: { path: { run } }, body }));
    toast("done", "The run is being cancelled", `it was ${answer.status} at event ${counted(answer.seq)}`);
    changed();
    onClose();
  }

  return (
    <FormDialog
      sending={sending}
      title="Cancel this run?"
      verb="Cancel the run"
      away="Let it run"
      look="danger"
      size="small"
      onSend={cancel}
      onClose={onClose}
    >
      <p>Work in progress is stopped, nothing new starts, and the run cannot be resumed.</p>
      <Field label="Reason" hint="It is recorded in the log.">
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
    </FormDialog>
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
  const sending = useSending();

  async function resume() {
    const body = { failed: isFailedOnly };
    const answer = await answered(api.POST("/api/executions/{run}/resume", { params: { path: { run } }, body }));
    toast("done", "The run goes on", `what comes after event ${counted(answer.seq)} belongs to it`);
    page.goTo(null);
    changed();
    onClose();
  }

  return (
    <FormDialog sending={sending} title="Resume this run?" verb="Resume" size="small" onSend={resume} onClose={onClose}>
      <p>
        {choice === "only"
          ? `The run completed, and ${plural(failed, "iteration")} of it failed. These run again, with what follows from them.`
          : "Finished work is kept. What failed, was interrupted or has not started runs, with the document that the run is pinned to."}
      </p>
      {choice === "choice" && (
        <Checkbox
          label={`Only the ${plural(failed, "iteration")} that failed`}
          checked={isFailedOnly}
          onChange={(event) => setFailedOnly(event.target.checked)}
        />
      )}
    </FormDialog>
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
          Every decision is made again from the recorded outcomes, and compared with the log. Nothing is run.
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
