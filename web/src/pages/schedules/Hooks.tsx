import { useQuery, useQueryClient } from "@tanstack/react-query";
import { Link, useNavigate } from "@tanstack/react-router";
import { useState } from "react";
import { useSession } from "@/api/session";
import { Actions } from "@/shell/Actions";
import {
  Badge,
  Button,
  Checkbox,
  Confirm,
  CopyButton,
  EmptyState,
  ErrorState,
  Field,
  FormDialog,
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
  useSending,
} from "@/ui";
import { catalogQuery } from "../documents/queries";
import { addressOf, fireHook, newSecret } from "./hook";
import { dropHook, type Hook, hooksQuery, type PutHook, putHook } from "./queries";
import { NoDocuments } from "./Target";
import { TriggerDialog } from "./TriggerDialog";

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
            A hook is an address that starts a run of a document when a request is sent to it.
          </EmptyState>
        )
      ) : (
        <div className="schedules-list">
          <Table caption="Hooks">
            <thead>
              <tr>
                <Th>Hook</Th>
                <Th>Runs</Th>
                <Th>Callers need</Th>
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
                      <Badge icon="lock">its secret</Badge>
                    ) : (
                      <Badge icon="key">a token for runs</Badge>
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
        <p>Its address stops answering, and its secret is deleted. Its runs stay.</p>
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
  const [isSigned, setSigned] = useState(hook?.is_signed ?? true);
  const [secret, setSecret] = useState(() => (hook === null ? newSecret() : ""));
  // An empty one leaves the secret that is there.
  const mustHave = isSigned && !(hook?.is_signed ?? false);
  const wrongSecret =
    isSigned && (mustHave || secret !== "") && secret.length < 16
      ? "it is too short: at least 16 characters are needed"
      : null;
  return (
    <TriggerDialog
      kind="hook"
      from={hook}
      taken={taken}
      example="new-order"
      hint={addressOf}
      isWrong={wrongSecret !== null}
      put={(name, runs) =>
        putHook(name, {
          ...runs,
          is_on: hook?.is_on ?? true,
          ...(!isSigned ? { secret: null } : secret !== "" && { secret }),
        })
      }
      queryKey={hooksQuery.queryKey}
      onClose={onClose}
    >
      {(isTried) => (
        <>
          <p className="quiet">
            The run gets what was sent as <code>workload.event</code>.
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
                  : "Leave it empty to keep the current one."
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
                  <Button onClick={() => setSecret(newSecret())}>Generate</Button>
                </span>
              )}
            </Field>
          ) : (
            <p className="quiet">
              Each request then needs a token with the scope <code>run</code>.
            </p>
          )}
        </>
      )}
    </TriggerDialog>
  );
}

/** Sends something to the hook, as a sender would. */
function FireDialog({ hook, onClose }: { hook: Hook; onClose: () => void }) {
  const navigate = useNavigate();
  const [text, setText] = useState('{\n  "hello": "from the page"\n}');
  const [secret, setSecret] = useState("");
  const sending = useSending();
  const wrong = problemOf(text);

  async function send() {
    const run = await fireHook(hook.name, text, hook.is_signed ? secret : null);
    await navigate({ to: "/runs/$run", params: { run } });
  }

  return (
    <FormDialog
      sending={sending}
      title={`Test ${hook.name}`}
      verb="Send"
      icon="play"
      isWrong={wrong !== null}
      onSend={send}
      onClose={onClose}
    >
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
    </FormDialog>
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
