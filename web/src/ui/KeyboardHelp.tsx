import { Fragment, useState } from "react";
import { Dialog } from "./Dialog";
import { useListedShortcuts, useShortcuts } from "./shortcuts";

const WORDS: Record<string, string> = {
  ArrowUp: "↑",
  ArrowDown: "↓",
  ArrowLeft: "←",
  ArrowRight: "→",
  Escape: "Esc",
  " ": "Space",
  Mod: "Ctrl",
};

/** Press `?`: every key that does something on this page. */
export function KeyboardHelp() {
  const [isOpen, setOpen] = useState(false);
  useShortcuts("Everywhere", [{ keys: ["?"], label: "Show the keys", run: () => setOpen(true) }]);
  return (
    <Dialog isOpen={isOpen} onClose={() => setOpen(false)} title="Keys" size="normal">
      {isOpen && <Keys />}
    </Dialog>
  );
}

function Keys() {
  const groups = useListedShortcuts();
  return (
    <div className="ui-keys">
      {groups.map((group) => (
        <section key={group.name}>
          <h3>{group.name}</h3>
          <dl>
            {group.shortcuts.map((one) => (
              <div key={one.label}>
                <dt>{one.label}</dt>
                <dd>
                  {one.keys.map((key, at) => (
                    <Fragment key={key}>
                      {at > 0 && <span className="quiet"> or </span>}
                      <Chord text={key} />
                    </Fragment>
                  ))}
                </dd>
              </div>
            ))}
          </dl>
        </section>
      ))}
    </div>
  );
}

function Chord({ text }: { text: string }) {
  if (text === " ") return <kbd>Space</kbd>;
  return text.split(" ").map((step, at) => (
    <Fragment key={step}>
      {at > 0 && <span className="quiet"> then </span>}
      {step.split("+").map((key) => (
        <kbd key={key}>{WORDS[key] ?? key}</kbd>
      ))}
    </Fragment>
  ));
}
