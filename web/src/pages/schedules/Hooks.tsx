import { useQuery, useQueryClient } from "@tanstack/react-query";
import { Link, useNavigate } from "@tanstack/react-router";
import { type FormEvent, useState } from "react";
import { ApiError } from "@/api/errors";
import { useSession } from "@/api/session";
import { Actions } from "@/shell/Actions";
import {
  Badge,
  Button,
  Checkbox,
  Confirm,
  CopyButton,
  Dialog,
  EmptyState,
  ErrorState,
  Field,
  Input,
  Loading,
  Menu,
  type MenuItem,
  names,
  Table,
  Td,
  Textarea,
  Th,
  toast,
  toastError,
} from "@/ui";
import { catalogQuery } from "../documents/queries";
import { Refusal } from "../documents/RunForm";
import { addressOf, fireHook, newSecret } from "./hook";
import { dropHook, type Hook, hooksQuery, type PutHook, putHook } from "./queries";
import { nameProblem } from "./slots";
import { NoDocuments, payloadOf, Target, targetOf, useTargetForm } from "./Target";

export function Hooks() {
  const { can } = useSession();
  const queries = useQueryClient();
  const { data, error, refetch } = useQuery(hooksQuery);
  const documents = useQuery(catalogQuery);
  const [edited, setEdited] = useState<Hook | "new" | null>(null);
  const [fired, setFired] = useState<Hook | null>(null);
  const [dropped, setDropped] = useState<Hook | null>(null);
  const hasDocuments = (documents.data?.documents.length ?? 0) > 0;

  async function done(doing: Promise<unknown>, said: string) {
    try {
      await doing;
      toast("done", said);
      setDropped(null);
      await queries.invalidateQueries({ queryKey: hooksQuery.queryKey });
    } catch (error) {
      toastError(error);
    }
  }

  if (data === undefined) {
    return error === null ? (
      <Loading rows={6} />
    ) : (
      <ErrorState error={error} title="The hooks cannot be listed" onRetry={() => void refetch()} />
    );
  }
  const make = can("admin") && hasDocuments && (
    <Button look="primary" icon="plus" onClick={() => setEdited("new")}>
      New hook
    </Button>
  );
  return (
    <>
      <Actions>{make}</Actions>
      {data.hooks.length === 0 ? (
        !hasDocuments && documents.data !== undefined ? (
          <NoDocuments what="Hooks" />
        ) : (
          <EmptyState icon="link" title="There are no hooks" actions={make}>
            A hook is an address that starts a run of a document when something is sent to it.
          </EmptyState>
        )
      ) : (
        <div className="schedules-list">
          <Table caption="Hooks">
            <thead>
              <tr>
                <Th>Hook</Th>
                <Th>Runs</Th>
                <Th>Who may call it</Th>
                <Th>Address</Th>
                <Th>
                  <span className="visually-hidden">Actions</span>
                </Th>
              </tr>
            </thead>
            <tbody>
              {data.hooks.map((hook) => (
                <tr key={hook.name} className={names(!hook.is_on && "is-off")}>
                  <Td>
                    <strong>{hook.name}</strong> {!hook.is_on && <Badge icon="pause">paused</Badge>}
                  </Td>
                  <Td className="mono">
                    <Link
                      to="/documents/catalog/$"
                      params={{ _splat: hook.path }}
                      search={{ version: hook.version ?? undefined }}
                    >
                      {hook.path}
                      {hook.version !== null && `@${hook.version}`}
                    </Link>
                  </Td>
                  <Td>
                    {hook.is_signed ? (
                      <Badge icon="lock">who has its secret</Badge>
                    ) : (
                      <Badge icon="key">who has a token for runs</Badge>
                    )}
                  </Td>
                  <Td>
                    <span className="schedules-address">
                      <code className="ellipsis" title={addressOf(hook.name)}>
                        {addressOf(hook.name)}
                      </code>
                      <CopyButton text={addressOf(hook.name)} label={`Copy the address of ${hook.name}`} />
                    </span>
                  </Td>
                  <Td>
                    <span className="documents-row-actions">
                      {can("run") && hook.is_on && (
                        <Button
                          size="small"
                          icon="play"
                          onClick={() => setFired(hook)}
                          aria-label={`Test ${hook.name}`}
                        >
                          Test
                        </Button>
                      )}
                      {can("admin") && (
                        <Menu
                          label={`More for ${hook.name}`}
                          align="end"
                          size="small"
                          items={actionsFor(hook, {
                            edit: () => setEdited(hook),
                            toggle: () =>
                              void done(
                                putHook(hook.name, { ...wanted(hook), is_on: !hook.is_on }),
                                hook.is_on ? `Paused ${hook.name}` : `Resumed ${hook.name}`,
                              ),
                            drop: () => setDropped(hook),
                          })}
                        />
                      )}
                    </span>
                  </Td>
                </tr>
              ))}
            </tbody>
          </Table>
        </div>
      )}
      {edited !== null && (
        <HookDialog
          hook={edited === "new" ? null : edited}
          taken={data.hooks.map((one) => one.name)}
          onClose={() => setEdited(null)}
        />
      )}
      {fired !== null && <FireDialog hook={fired} onClose={() => setFired(null)} />}
      <Confirm
        isOpen={dropped !== null}
        title={`Delete ${dropped?.name ?? ""}?`}
        verb="Delete the hook"
        isDangerous
        onClose={() => setDropped(null)}
        onConfirm={() => dropped !== null && void done(dropHook(dropped.name), `Deleted ${dropped.name}`)}
      >
        <p>Its address answers no more, and its secret is gone. Its runs stay.</p>
      </Confirm>
    </>
  );
}

function actionsFor(
  hook: Hook,
  does: { edit: () => void; toggle: () => void; drop: () => void },
): (MenuItem | "line")[] {
  return [
    { label: hook.is_on ? "Pause" : "Resume", icon: hook.is_on ? "pause" : "play", onSelect: does.toggle },
    { label: "Edit …", icon: "edit", onSelect: does.edit },
    "line",
    { label: "Delete …", icon: "trash", isDangerous: true, onSelect: does.drop },
  ];
}

/** The secret stays as it is. */
function wanted(hook: Hook): PutHook {
  const { path, version, payload, context, is_on } = hook;
  return { path, version, payload, context, is_on };
}

function HookDialog({ hook, taken, onClose }: { hook: Hook | null; taken: readonly string[]; onClose: () => void }) {
  const queries = useQueryClient();
  const [name, setName] = useState(hook?.name ?? "");
  const [target, setTarget] = useState(() => targetOf(hook));
  const [isSigned, setSigned] = useState(hook?.is_signed ?? true);
  const [secret, setSecret] = useState(() => (hook === null ? newSecret() : ""));
  const [isTried, setTried] = useState(false);
  const [refusal, setRefusal] = useState<ApiError | null>(null);
  const [isBusy, setBusy] = useState(false);
  const form = useTargetForm(target);
  const { payload, errors } = payloadOf(target, form.data?.fields ?? []);
  const wrongName = hook === null ? nameProblem(name, taken) : null;
  const wrongPath = target.path === "" ? "a document is needed" : null;
  // An empty one leaves the secret that is there.
  const mustHave = isSigned && !(hook?.is_signed ?? false);
  const wrongSecret =
    isSigned && (mustHave || secret !== "") && secret.length < 16
      ? "it is too short: at least 16 characters are needed"
      : null;
  const isWrong = wrongName !== null || wrongPath !== null || wrongSecret !== null || Object.keys(errors).length > 0;

  async function save(event: FormEvent) {
    event.preventDefault();
    setTried(true);
    if (isWrong) return;
    setBusy(true);
    try {
      await putHook(name, {
        path: target.path,
        version: target.version,
        payload,
        context: target.context === "" ? null : target.context,
        is_on: hook?.is_on ?? true,
        ...(!isSigned ? { secret: null } : secret !== "" && { secret }),
      });
      await queries.invalidateQueries({ queryKey: hooksQuery.queryKey });
      toast("done", hook === null ? `Made ${name}` : `Saved ${name}`);
      onClose();
    } catch (error) {
      setBusy(false);
      if (error instanceof ApiError && error.status < 500) setRefusal(error);
      else toastError(error);
    }
  }

  return (
    <Dialog
      isOpen
      onClose={onClose}
      title={hook === null ? "New hook" : `Edit ${hook.name}`}
      actions={
        <>
          <Button onClick={onClose}>Back</Button>
          <Button look="primary" type="submit" form="hook" isBusy={isBusy}>
            {hook === null ? "Make the hook" : "Save the hook"}
          </Button>
        </>
      }
    >
      <form id="hook" className="documents-form" onSubmit={(event) => void save(event)} noValidate>
        {refusal !== null && <Refusal error={refusal} />}
        {hook === null && (
          <Field
            label="Name"
            isRequired
            error={isTried ? wrongName : null}
            hint={name === "" ? undefined : addressOf(name)}
          >
            {(control) => (
              <Input
                {...control}
                value={name}
                autoFocus
                spellCheck={false}
                placeholder="new-order"
                onChange={(event) => setName(event.target.value)}
              />
            )}
          </Field>
        )}
        <Target
          target={target}
          onChange={setTarget}
          errors={isTried ? errors : {}}
          pathError={isTried ? wrongPath : null}
        />
        <p className="quiet">
          What is sent is given to the run as <code>workload.event</code>.
        </p>
        <Checkbox
          label="Requests must be signed with a secret"
          checked={isSigned}
          onChange={(event) => setSigned(event.target.checked)}
        />
        {isSigned ? (
          <Field
            label="Secret"
            isRequired={mustHave}
            error={isTried ? wrongSecret : null}
            hint={
              mustHave
                ? "Give it to the sender now: it is not shown again."
                : "Leave it empty to keep the one that is there."
            }
          >
            {(control) => (
              <span className="schedules-address">
                <Input
                  {...control}
                  className="mono"
                  value={secret}
                  spellCheck={false}
                  autoComplete="off"
                  onChange={(event) => setSecret(event.target.value)}
                />
                <CopyButton text={secret} label="Copy the secret" size="normal" />
                <Button onClick={() => setSecret(newSecret())}>New one</Button>
              </span>
            )}
          </Field>
        ) : (
          <p className="quiet">
            Then each request needs a token with the scope <code>run</code>.
          </p>
        )}
      </form>
    </Dialog>
  );
}

/** Sends something to the hook, as a sender would. */
function FireDialog({ hook, onClose }: { hook: Hook; onClose: () => void }) {
  const navigate = useNavigate();
  const [text, setText] = useState('{\n  "hello": "from the page"\n}');
  const [secret, setSecret] = useState("");
  const [refusal, setRefusal] = useState<ApiError | null>(null);
  const [isBusy, setBusy] = useState(false);
  const wrong = problemOf(text);

  async function send(event: FormEvent) {
    event.preventDefault();
    if (wrong !== null) return;
    setBusy(true);
    try {
      const run = await fireHook(hook.name, text, hook.is_signed ? secret : null);
      await navigate({ to: "/runs/$run", params: { run } });
    } catch (error) {
      setBusy(false);
      if (error instanceof ApiError && error.status < 500) setRefusal(error);
      else toastError(error);
    }
  }

  return (
    <Dialog
      isOpen
      onClose={onClose}
      title={`Test ${hook.name}`}
      actions={
        <>
          <Button onClick={onClose}>Back</Button>
          <Button look="primary" icon="play" type="submit" form="fire" isBusy={isBusy} disabled={wrong !== null}>
            Send
          </Button>
        </>
      }
    >
      <form id="fire" className="documents-form" onSubmit={(event) => void send(event)} noValidate>
        {refusal !== null && <Refusal error={refusal} />}
        <p>This starts a real run.</p>
        <Field label="Body (JSON)" error={wrong}>
          {(control) => (
            <Textarea
              {...control}
              className="mono"
              rows={8}
              value={text}
              spellCheck={false}
              onChange={(event) => setText(event.target.value)}
            />
          )}
        </Field>
        {hook.is_signed && (
          <Field label="Secret of the hook" isRequired hint="It signs this request in the browser, and is not kept.">
            {(control) => (
              <Input
                {...control}
                type="password"
                autoComplete="off"
                value={secret}
                onChange={(event) => setSecret(event.target.value)}
              />
            )}
          </Field>
        )}
      </form>
    </Dialog>
  );
}

function problemOf(text: string): string | null {
  try {
    JSON.parse(text);
    return null;
  } catch (error) {
    return `it is not JSON: ${error instanceof Error ? error.message : "it cannot be read"}`;
  }
}
