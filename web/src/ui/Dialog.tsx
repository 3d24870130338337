import { type ReactNode, useEffect, useId, useRef } from "react";
import { Button, IconButton } from "./Button";
import { names } from "./names";

const FIELDS = ".ui-dialog-body :is(input, textarea, select, [contenteditable=true]):not(:disabled)";

interface DialogProps {
  isOpen: boolean;
  onClose: () => void;
  title: ReactNode;
  size?: "small" | "normal" | "wide";
  /** Buttons at the foot, the main one last. */
  actions?: ReactNode;
  children?: ReactNode;
}

/**
 * A modal dialog: the browser's own, which keeps the focus inside and closes on Escape; the focus goes back to where it was. It begins
 * at `data-autofocus`, else at the first field.
 */
export function Dialog({ isOpen, onClose, title, size = "normal", actions, children }: DialogProps) {
  const box = useRef<HTMLDialogElement>(null);
  const id = useId();

  useEffect(() => {
    const dialog = box.current;
    if (!isOpen || dialog === null) return;
    const before = document.activeElement;
    dialog.showModal();
    // Not on the button that closes it, where the browser would put it.
    const first = dialog.querySelector<HTMLElement>("[data-autofocus]") ?? dialog.querySelector<HTMLElement>(FIELDS);
    (first ?? dialog).focus();
    return () => {
      dialog.close();
      if (before instanceof HTMLElement && before.isConnected) before.focus();
    };
  }, [isOpen]);

  if (!isOpen) return null;
  return (
    <dialog
      ref={box}
      className={names("ui-dialog", `ui-dialog-${size}`)}
      tabIndex={-1}
      aria-labelledby={id}
      onCancel={(event) => {
        event.preventDefault();
        onClose();
      }}
      onClick={(event) => event.target === box.current && onClose()}
      onKeyDown={(event) => event.stopPropagation()}
    >
      <div className="ui-dialog-box">
        <header className="ui-dialog-head">
          <h2 id={id}>{title}</h2>
          <IconButton icon="close" label="Close" onClick={onClose} />
        </header>
        <div className="ui-dialog-body">{children}</div>
        {actions !== undefined && <footer className="ui-dialog-foot">{actions}</footer>}
      </div>
    </dialog>
  );
}

interface ConfirmProps {
  isOpen: boolean;
  onClose: () => void;
  title: string;
  /** What the button says: a verb. */
  verb: string;
  /** What the button says that does nothing. */
  away?: string;
  isDangerous?: boolean;
  isBusy?: boolean;
  onConfirm: () => void;
  children?: ReactNode;
}

/** Asks before something that cannot be taken back. */
export function Confirm({
  isOpen,
  onClose,
  title,
  verb,
  away = "Cancel",
  isDangerous = false,
  isBusy = false,
  onConfirm,
  children,
}: ConfirmProps) {
  return (
    <Dialog
      isOpen={isOpen}
      onClose={onClose}
      title={title}
      size="small"
      actions={
        <>
          <Button onClick={onClose} data-autofocus={isDangerous || undefined}>
            {away}
          </Button>
          <Button
            look={isDangerous ? "danger" : "primary"}
            isBusy={isBusy}
            onClick={onConfirm}
            data-autofocus={!isDangerous || undefined}
          >
            {verb}
          </Button>
        </>
      }
    >
      {children}
    </Dialog>
  );
}
