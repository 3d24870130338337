import { useQuery, useQueryClient } from "@tanstack/react-query";
import { getRouteApi, Link, useBlocker } from "@tanstack/react-router";
import { useCallback, useEffect, useMemo, useRef, useState } from "react";
import { ApiError } from "@/api/errors";
import { useSession } from "@/api/session";
import { Actions } from "@/shell/Actions";
import { useCrumb } from "@/shell/Breadcrumbs";
import {
  Badge,
  Button,
  Confirm,
  Dialog,
  EmptyState,
  ErrorState,
  Icon,
  Loading,
  Menu,
  type MenuItem,
  toast,
  toastError,
  useShortcuts,
} from "@/ui";
import { Conflict } from "./Conflict";
import { dropDraft, keepDraft, readDraft } from "./drafts";
import { PutDialog } from "./PutDialog";
import { type FileText, fileQuery, filesQuery, readFile, saveFile } from "./queries";
import { RunForm } from "./RunForm";
import { whyNot } from "./runnable";
import { sourcesOf } from "./sources";
import { useExamined } from "./useExamined";
import { Workbench } from "./Workbench";

const route = getRouteApi("/shell/documents/file/$");

export function FilePage() {
  const { _splat: path = "" } = route.useParams();
  const { session } = useSession();
  const isLocal = session?.is_local ?? false;
  const { data, error, refetch } = useQuery({ ...fileQuery(path), enabled: isLocal });
  if (session !== null && !isLocal) {
    return (
      <EmptyState icon="file" title="Files are not shown here">
        This server keeps documents in its <Link to="/documents">catalog</Link>. Files are edited where{" "}
        <code>penstock ui</code> runs beside them.
      </EmptyState>
    );
  }
  if (error !== null)
    return <ErrorState error={error} title={`${path} cannot be opened`} onRetry={() => void refetch()} />;
  return data === undefined ? <Loading rows={12} /> : <FileEditor key={path} path={path} file={data} />;
}

interface Base {
  text: string;
  digest: string | null;
}

function FileEditor({ path, file }: { path: string; file: FileText }) {
  const { can } = useSession();
  const queries = useQueryClient();
  const search = route.useSearch();
  const navigate = route.useNavigate();
  const draftName = `file:${path}`;
  const [restored] = useState(() => {
    const draft = readDraft(draftName);
    return draft !== null && draft.text !== file.text ? draft : null;
  });
  const [base, setBase] = useState<Base>({ text: file.text, digest: restored?.digest ?? file.digest });
  const [text, setText] = useState(restored?.text ?? file.text);
  // What the editor begins with; what is typed into it afterwards is `text`.
  const [shown, setShown] = useState({ text, revision: 0 });
  const [isRestored, setRestored] = useState(restored !== null);
  const [conflict, setConflict] = useState<FileText | null>(null);
  const [changedOutside, setChangedOutside] = useState<FileText | null>(null);
  const [isSaving, setSaving] = useState(false);
  const [dialog, setDialog] = useState<"run" | "put" | "discard" | null>(null);
  const files = useQuery(filesQuery);
  const canSave = can("admin");
  const isDirty = text !== base.text;
  const dirty = useRef(isDirty);
  dirty.current = isDirty;
  const latest = useRef(text);
  latest.current = text;

  const document = useMemo(() => ({ text, file: file.file }), [text, file.file]);
  const examination = useExamined(text.trim() === "" ? null : document, text);
  const reason = can("run") ? (text.trim() === "" ? "it is empty" : whyNot(examination)) : null;
  useCrumb(`${isDirty ? "• " : ""}${path}`);

  useEffect(() => {
    const timer = window.setTimeout(() => {
      if (isDirty) keepDraft(draftName, { text, digest: base.digest });
      else dropDraft(draftName);
    }, 200);
    return () => window.clearTimeout(timer);
  }, [isDirty, text, base.digest, draftName]);

  function adopt(saved: FileText) {
    setBase({ text: saved.text, digest: saved.digest });
    dirty.current = latest.current !== saved.text;
    if (!dirty.current) dropDraft(draftName);
    setRestored(false);
    setChangedOutside(null);
    queries.setQueryData(fileQuery(path).queryKey, saved);
    void queries.invalidateQueries({ queryKey: filesQuery.queryKey });
  }

  /** Whether it was saved. */
  async function save(digest: string | null = base.digest): Promise<boolean> {
    setSaving(true);
    try {
      adopt(await saveFile(path, latest.current, digest));
      setConflict(null);
      return true;
    } catch (error) {
      if (error instanceof ApiError && error.status === 409) await meet();
      else toastError(error);
      return false;
    } finally {
      setSaving(false);
    }
  }

  /** Somebody else has written the file: unless they wrote the same, the user decides. */
  async function meet() {
    try {
      const theirs = await readFile(path);
      if (theirs.text === latest.current) adopt(theirs);
      else setConflict(theirs);
    } catch (error) {
      toastError(error);
    }
  }

  function take(theirs: FileText) {
    latest.current = theirs.text;
    setText(theirs.text);
    setShown(({ revision }) => ({ text: theirs.text, revision: revision + 1 }));
    setConflict(null);
    adopt(theirs);
  }

  const seen = useCallback(
    (now: FileText) => {
      setBase((before) => {
        if (before.digest === now.digest) return before;
        if (dirty.current) {
          setChangedOutside(now);
          return before;
        }
        setText(now.text);
        setShown(({ revision }) => ({ text: now.text, revision: revision + 1 }));
        toast("note", `Read ${path} again: it has changed on disk`);
        return { text: now.text, digest: now.digest };
      });
    },
    [path],
  );
  // Another editor may have written the file while this tab was not looked at.
  useEffect(() => {
    const look = () => {
      if (window.document.visibilityState === "visible") readFile(path).then(seen, () => undefined);
    };
    window.addEventListener("focus", look);
    return () => window.removeEventListener("focus", look);
  }, [path, seen]);

  const blocker = useBlocker({
    shouldBlockFn: ({ current, next }) => dirty.current && current.pathname !== next.pathname,
    enableBeforeUnload: () => dirty.current,
    withResolver: true,
  });

  const run = () => {
    if (reason === null && can("run")) setDialog("run");
  };
  useShortcuts("Document", [
    { keys: ["Mod+s"], label: "Save", run: () => void save(), isGlobal: true, isDisabled: !canSave },
    { keys: ["Mod+Enter"], label: "Run", run, isGlobal: true, isDisabled: !can("run") },
  ]);

  const items: (MenuItem | "line")[] = [
    ...(can("run")
      ? [{ label: "Add to the catalog …", icon: "upload" as const, onSelect: () => setDialog("put") }]
      : []),
    {
      label: "Discard the changes …",
      icon: "trash",
      isDangerous: true,
      isDisabled: !isDirty,
      onSelect: () => setDialog("discard"),
    },
  ];
  return (
    <>
      <Actions>
        {!canSave ? <Badge icon="lock">read only</Badge> : isDirty && <Badge tone="retrying">unsaved</Badge>}
        {reason !== null && (
          <span id="run-reason" className="document-reason">
            Run: {reason}
          </span>
        )}
        {canSave && (
          <Button icon="save" onClick={() => void save()} isBusy={isSaving} disabled={!isDirty} title="Ctrl+S">
            Save
          </Button>
        )}
        {can("run") && (
          <Button
            look="primary"
            icon="play"
            disabled={reason !== null}
            aria-describedby={reason === null ? undefined : "run-reason"}
            onClick={run}
            title="Ctrl+Enter"
          >
            {isDirty && canSave ? "Save and run" : "Run"}
          </Button>
        )}
        {(canSave || can("run")) && <Menu label="More" items={items} align="end" />}
      </Actions>
      <h1 className="visually-hidden">{path}</h1>
      <Workbench
        file={file.file}
        label={`The text of ${path}`}
        text={shown.text}
        revision={shown.revision}
        isReadOnly={!canSave}
        isLocal
        document={document}
        examination={examination}
        files={files.data?.files ?? []}
        line={search.line}
        view={search.view}
        onView={(view) => void navigate({ search: (before) => ({ ...before, view }), replace: true })}
        onChange={setText}
        notice={
          changedOutside !== null ? (
            <Notice
              text="The file has changed on disk."
              actions={
                <Button size="small" onClick={() => setConflict(changedOutside)}>
                  See what changed
                </Button>
              }
            />
          ) : (
            isRestored &&
            isDirty && (
              <Notice
                text="Your unsaved changes have been restored."
                actions={
                  <>
                    <Button size="small" look="quiet" onClick={() => setRestored(false)}>
                      Keep them
                    </Button>
                    <Button size="small" onClick={() => setDialog("discard")}>
                      Discard
                    </Button>
                  </>
                }
              />
            )
          )
        }
      />
      {dialog === "run" && examination.answer?.form && (
        <RunForm
          form={examination.answer.form}
          graph={examination.graph}
          verb={isDirty && canSave ? "Save and run" : "Run"}
          document={async () =>
            isDirty && canSave && !(await save()) ? null : { text: latest.current, file: file.file }
          }
          onClose={() => setDialog(null)}
        />
      )}
      {dialog === "put" && (
        <PutDialog
          text={text}
          sources={() => sourcesOf(examination.graph, file, files.data?.files ?? [])}
          path={path.replace(/\.ya?ml$/i, "")}
          onClose={() => setDialog(null)}
        />
      )}
      <Confirm
        isOpen={dialog === "discard"}
        title="Discard the changes?"
        verb="Discard"
        isDangerous
        onClose={() => setDialog(null)}
        onConfirm={() => {
          setDialog(null);
          readFile(path).then(take, toastError);
        }}
      >
        <p>The editor goes back to the saved file. What you have typed since then is lost.</p>
      </Confirm>
      {conflict !== null && (
        <Conflict
          mine={text}
          theirs={conflict}
          isBusy={isSaving}
          onClose={() => setConflict(null)}
          onKeepMine={() => void save(conflict.digest)}
          onTakeTheirs={() => take(conflict)}
        />
      )}
      {blocker.status === "blocked" && conflict === null && (
        <Dialog
          isOpen
          size="small"
          title="There are unsaved changes"
          onClose={blocker.reset}
          actions={
            <>
              <Button onClick={blocker.reset}>Stay</Button>
              <Button
                look="danger"
                onClick={() => {
                  dirty.current = false;
                  dropDraft(draftName);
                  blocker.proceed();
                }}
              >
                Discard and leave
              </Button>
              {canSave && (
                <Button
                  look="primary"
                  isBusy={isSaving}
                  onClick={() => {
                    void save().then((isSaved) => (isSaved ? blocker.proceed() : blocker.reset()));
                  }}
                >
                  Save and leave
                </Button>
              )}
            </>
          }
        >
          <p>
            The changes to <code>{path}</code> have not been saved.
          </p>
        </Dialog>
      )}
    </>
  );
}

function Notice({ text, actions }: { text: string; actions: React.ReactNode }) {
  return (
    <div className="document-notice" role="status">
      <Icon name="info" size={14} />
      <span>{text}</span>
      {actions}
    </div>
  );
}
