import { useEffect, useId, useRef, useState } from "react";
import { Button, Checkbox, counted, Icon } from "@/ui";

interface TypeFilterProps {
  /** Type -> how many there are. */
  types: Readonly<Record<string, number>>;
  chosen: readonly string[];
  onChoose: (types: readonly string[]) => void;
}

/** A button with a list of the types of events to tick. It stays open while several are ticked. */
export function TypeFilter({ types, chosen, onChoose }: TypeFilterProps) {
  const [isOpen, setOpen] = useState(false);
  const id = useId();
  const box = useRef<HTMLDivElement>(null);

  useEffect(() => {
    if (!isOpen) return;
    const onOutside = (event: Event) => !box.current?.contains(event.target as Node) && setOpen(false);
    document.addEventListener("pointerdown", onOutside);
    document.addEventListener("focusin", onOutside);
    return () => {
      document.removeEventListener("pointerdown", onOutside);
      document.removeEventListener("focusin", onOutside);
    };
  }, [isOpen]);

  const groups = Object.entries(grouped(types));
  const toggle = (type: string) =>
    onChoose(chosen.includes(type) ? chosen.filter((one) => one !== type) : [...chosen, type]);
  return (
    // biome-ignore lint/a11y/noStaticElementInteractions: Escape closes the list, wherever in it the focus is.
    <div
      className="ev-types"
      ref={box}
      onKeyDown={(event) => {
        if (event.key !== "Escape" || !isOpen) return;
        event.stopPropagation();
        setOpen(false);
        box.current?.querySelector("button")?.focus();
      }}
    >
      <Button
        size="small"
        icon="filter"
        aria-expanded={isOpen}
        aria-controls={isOpen ? id : undefined}
        aria-pressed={chosen.length > 0}
        onClick={() => setOpen(!isOpen)}
      >
        {chosen.length === 0 ? "All types" : chosen.length === 1 ? chosen[0] : `${chosen.length} types`}
        <Icon name="chevron-down" size={12} />
      </Button>
      {isOpen && (
        // biome-ignore lint/a11y/useSemanticElements: a fieldset cannot float.
        <div id={id} role="group" aria-label="Types of events" className="ev-types-list">
          <div className="ev-types-head">
            <Button size="small" look="quiet" disabled={chosen.length === 0} onClick={() => onChoose([])}>
              All types
            </Button>
          </div>
          {groups.length === 0 && <p className="quiet">No events yet</p>}
          {groups.map(([word, all]) => (
            <div key={word} className="ev-types-group">
              {all.map(([type, count]) => (
                <Checkbox
                  key={type}
                  checked={chosen.includes(type)}
                  onChange={() => toggle(type)}
                  label={
                    <span className="ev-type-choice">
                      <span className="mono">{type}</span>
                      <span className="quiet">{counted(count)}</span>
                    </span>
                  }
                />
              ))}
            </div>
          ))}
        </div>
      )}
    </div>
  );
}

function grouped(types: Readonly<Record<string, number>>): Record<string, [string, number][]> {
  const found: Record<string, [string, number][]> = {};
  for (const [type, count] of Object.entries(types).sort(([one], [other]) => one.localeCompare(other))) {
    const word = type.split(".")[0] ?? type;
    found[word] ??= [];
    found[word].push([type, count]);
  }
  return found;
}
