/** Dialogs with a form that is sent to the server: what it refuses is said above the fields, until something is typed. */
import { type FormEvent, type ReactNode, useId, useState } from "react";
import { ApiError } from "@/api/errors";
import { Button, type ButtonProps } from "./Button";
import { Dialog } from "./Dialog";
import { Icon, type IconName } from "./Icon";
import { Prose } from "./Prose";
import { sentence, toastError } from "./Toast";

export interface Sending {
  /** What is wrong with a field is said once somebody has tried to send it. */
  isTried: boolean;
  isBusy: boolean;
  refusal: ApiError | null;
  setTried: () => void;
  forgive: () => void;
  send: (doing: () => Promise<unknown>) => Promise<void>;
}

export function useSending(): Sending {
  const [isTried, setTried] = useState(false);
  const [isBusy, setBusy] = useState(false);
  const [refusal, setRefusal] = useState<ApiError | null>(null);
  return {
    isTried,
    isBusy,
    refusal,
    setTried: () => setTried(true),
    forgive: () => setRefusal(null),
    send: async (doing) => {
      setBusy(true);
      setRefusal(null);
      try {
        await doing();
      } catch (error) {
        if (error instanceof ApiError && error.status < 500) setRefusal(error);
        else toastError(error);
      }
      setBusy(false);
    },
  };
}

interface FormDialogProps {
  sending: Sending;
  title: ReactNode;
  /** What the button says. */
  verb: string;
  icon?: IconName;
  look?: ButtonProps["look"];
  size?: "small" | "normal" | "wide";
  /** Then nothing is sent, and the first field that says so gets the focus. */
  isWrong?: boolean;
  /** The refusal is said at a field. */
  isBlamed?: boolean;
  /** What the button says that does nothing. */
  away?: string;
  /** Further buttons. */
  more?: ReactNode;
  onSend: () => Promise<unknown>;
  onClose: () => void;
  children: ReactNode;
}

export function FormDialog(props: FormDialogProps) {
  const { sending, title, verb, icon, look = "primary", size, isWrong = false, isBlamed = false, more } = props;
  const id = useId();

  function submit(event: FormEvent) {
    event.preventDefault();
    sending.setTried();
    if (!isWrong) void sending.send(props.onSend);
    else
      window.requestAnimationFrame(() =>
        document.querySelector<HTMLElement>(`#${CSS.escape(id)} [aria-invalid=true]`)?.focus(),
      );
  }

  return (
    <Dialog
      isOpen
      onClose={props.onClose}
      title={title}
      size={size}
      actions={
        <>
          <Button onClick={props.onClose}>{props.away ?? "Cancel"}</Button>
          <Button look={look} icon={icon} type="submit" form={id} isBusy={sending.isBusy}>
            {verb}
          </Button>
          {more}
        </>
      }
    >
      <form id={id} className="ui-form" onSubmit={submit} onChange={sending.forgive} noValidate>
        {sending.refusal !== null && !isBlamed && <Refusal error={sending.refusal} />}
        {props.children}
      </form>
    </Dialog>
  );
}

function Refusal({ error }: { error: ApiError }) {
  return (
    <div className="ui-refusal" role="alert">
      <Icon name="error" />
      <div>
        <Prose text={sentence(error.message)} />
        {error.hint !== null && (
          <p className="quiet">
            <Prose text={sentence(error.hint)} />
          </p>
        )}
        {error.problems.length > 0 && (
          <ul>
            {error.problems.slice(0, 6).map((problem, at) => (
              // biome-ignore lint/suspicious/noArrayIndexKey: the problems of one answer keep their places.
              <li key={at}>
                {problem.line ? <span className="mono quiet">line {problem.line}: </span> : null}
                <Prose text={problem.message} />
              </li>
            ))}
          </ul>
        )}
      </div>
    </div>
  );
}
