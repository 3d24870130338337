/** Makes or changes a schedule or a hook: what it is called, what it runs, and what only one of them has. */
import { type QueryKey, useQueryClient } from "@tanstack/react-query";
import { type ReactNode, useState } from "react";
import { Field, FormDialog, Input, toast, useSending } from "@/ui";
import type { Hook, Schedule } from "./queries";
import { nameProblem } from "./slots";
import { payloadOf, Target, targetOf, useTargetForm } from "./Target";

interface Props {
  kind: "schedule" | "hook";
  /** Null makes a new one. */
  from: Schedule | Hook | null;
  taken: readonly string[];
  /** An example of a name. */
  example: string;
  hint?: (name: string) => string;
  size?: "normal" | "wide";
  /** Something that only this kind has is wrong. */
  isWrong: boolean;
  put: (name: string, runs: Runs) => Promise<unknown>;
  queryKey: QueryKey;
  onClose: () => void;
  onSaved?: (name: string) => void;
  /** What only this kind has, in the same column. */
  children: (isTried: boolean) => ReactNode;
  /** And beside it. */
  aside?: ReactNode;
}

/** What schedules and hooks have in common for the API. */
export type Runs = Pick<Schedule & Hook, "path" | "version" | "payload" | "context">;

export function TriggerDialog(props: Props) {
  const { kind, from, taken, put, queryKey, onClose, onSaved = onClose, aside } = props;
  const queries = useQueryClient();
  const sending = useSending();
  const [name, setName] = useState(from?.name ?? "");
  const [target, setTarget] = useState(() => targetOf(from));
  const form = useTargetForm(target);
  const { payload, errors } = payloadOf(target, form.data?.fields ?? []);
  const wrongName = from === null ? nameProblem(name, taken) : null;
  const wrongPath = target.path === "" ? "a document is needed" : null;
  const isWrong = props.isWrong || wrongName !== null || wrongPath !== null || Object.keys(errors).length > 0;
  const { isTried } = sending;

  async function save() {
    const { path, version, context } = target;
    await put(name, { path, version, payload, context: context === "" ? null : context });
    await queries.invalidateQueries({ queryKey });
    toast("done", from === null ? `Created ${name}` : `Saved ${name}`);
    onSaved(name);
  }

  const fields = (
    <>
      {from === null && (
        <Field
          label="Name"
          isRequired
          error={isTried ? wrongName : null}
          hint={name === "" ? undefined : props.hint?.(name)}
        >
          {(control) => (
            <Input
              {...control}
              value={name}
              autoFocus
              spellCheck={false}
              placeholder={props.example}
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
      {props.children(isTried)}
    </>
  );
  return (
    <FormDialog
      sending={sending}
      title={from === null ? `New ${kind}` : `Edit ${from.name}`}
      verb={`${from === null ? "Create" : "Save"} the ${kind}`}
      size={props.size}
      isWrong={isWrong}
      onSend={save}
      onClose={onClose}
    >
      {aside === undefined ? (
        fields
      ) : (
        <div className="schedules-form">
          <div className="schedules-column">{fields}</div>
          <div className="schedules-column schedules-when">{aside}</div>
        </div>
      )}
    </FormDialog>
  );
}
