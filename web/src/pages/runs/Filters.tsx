import { type Ref, useEffect, useId, useRef, useState } from "react";
import { Button, Field, Icon, type IconName, Input, names, Select } from "@/ui";
import { momentOf } from "./rows";
import type { RunStatus, RunsSearch } from "./search";

const TYPING_MS = 250;

export type Change = (change: Partial<RunsSearch>) => void;

interface FiltersProps {
  search: RunsSearch;
  change: Change;
  /** The names of documents there have been runs of. */
  documents: readonly string[];
  searchRef: Ref<HTMLInputElement>;
}

export function Filters({ search, change, documents, searchRef }: FiltersProps) {
  const list = useId();
  return (
    <search className="runs-filters">
      <div className="runs-filter-search">
        <TextFilter
          label="Search runs"
          value={search.q}
          onChange={(q) => change({ q })}
          placeholder="Name, label, id or file"
          icon="search"
          ref={searchRef}
        />
      </div>
      <div className="runs-filter-name">
        <TextFilter
          label="Document"
          value={search.name}
          onChange={(name) => change({ name })}
          placeholder="Document"
          list={list}
        />
        <datalist id={list}>
          {documents.map((name) => (
            <option key={name} value={name} />
          ))}
        </datalist>
      </div>
      <div className="runs-filter-label">
        <TextFilter label="Label" value={search.label} onChange={(label) => change({ label })} placeholder="Label" />
      </div>
      <Field label="Kind" isLabelHidden>
        {(control) => (
          <Select
            {...control}
            value={search.kind ?? ""}
            onChange={(event) => change({ kind: (event.target.value || undefined) as RunsSearch["kind"] })}
            choices={[
              { value: "", label: "Any kind" },
              { value: "playbook", label: "Playbooks" },
              { value: "job", label: "Jobs" },
            ]}
          />
        )}
      </Field>
      <TimeRange search={search} change={change} />
    </search>
  );
}

interface TextFilterProps {
  label: string;
  value: string | undefined;
  onChange: (value: string | undefined) => void;
  placeholder: string;
  icon?: IconName;
  list?: string;
  ref?: Ref<HTMLInputElement>;
}

/** Follows what is typed after a pause, and the address when it changes. */
function TextFilter({ label, value, onChange, placeholder, icon, list, ref }: TextFilterProps) {
  const [typed, setTyped] = useState(value ?? "");
  const timer = useRef<number | undefined>(undefined);
  useEffect(() => setTyped(value ?? ""), [value]);
  useEffect(() => () => window.clearTimeout(timer.current), []);

  function set(text: string, wait: number) {
    setTyped(text);
    window.clearTimeout(timer.current);
    timer.current = window.setTimeout(() => onChange(text.trim() || undefined), wait);
  }

  return (
    <Field label={label} isLabelHidden>
      {(control) => (
        <Input
          {...control}
          ref={ref}
          type="search"
          icon={icon}
          list={list}
          value={typed}
          placeholder={placeholder}
          autoComplete="off"
          spellCheck={false}
          onChange={(event) => set(event.target.value, TYPING_MS)}
          onKeyDown={(event) => {
            if (event.key === "Enter") set(typed, 0);
            if (event.key !== "Escape") return;
            if (typed !== "") set("", 0);
            else event.currentTarget.blur();
          }}
        />
      )}
    </Field>
  );
}

const RANGES = [
  { value: "", label: "Any time" },
  { value: "1h", label: "Last hour" },
  { value: "24h", label: "Last 24 hours" },
  { value: "7d", label: "Last 7 days" },
  { value: "30d", label: "Last 30 days" },
  { value: "custom", label: "From … to …" },
];

function TimeRange({ search, change }: { search: RunsSearch; change: Change }) {
  const isKnown = search.until === undefined && RANGES.some((range) => range.value === (search.since ?? ""));
  const [isCustom, setCustom] = useState(!isKnown);
  const shown = isCustom || !isKnown ? "custom" : (search.since ?? "");
  return (
    <>
      <Field label="Started" isLabelHidden>
        {(control) => (
          <Select
            {...control}
            value={shown}
            choices={RANGES}
            onChange={(event) => {
              const value = event.target.value;
              setCustom(value === "custom");
              if (value !== "custom") change({ since: value || undefined, until: undefined });
            }}
          />
        )}
      </Field>
      {shown === "custom" && (
        <>
          <Moment label="From" value={search.since} onChange={(since) => change({ since })} />
          <Moment label="To" value={search.until} onChange={(until) => change({ until })} />
        </>
      )}
    </>
  );
}

interface MomentProps {
  label: string;
  value: string | undefined;
  onChange: (value: string | undefined) => void;
}

/** In local time on the page, with its zone in the address. */
function Moment({ label, value, onChange }: MomentProps) {
  const at = value === undefined ? null : momentOf(value, Date.now());
  const local = at === null ? "" : new Date(at - new Date(at).getTimezoneOffset() * 60_000).toISOString().slice(0, 16);
  return (
    <Field label={label} isLabelHidden>
      {(control) => (
        <Input
          {...control}
          type="datetime-local"
          title={label}
          value={local}
          onChange={(event) => {
            const chosen = new Date(event.target.value);
            onChange(Number.isNaN(chosen.getTime()) ? undefined : chosen.toISOString());
          }}
        />
      )}
    </Field>
  );
}

const STATES: readonly { status: RunStatus | undefined; label: string; icon?: IconName }[] = [
  { status: undefined, label: "All" },
  { status: "running", label: "Running", icon: "running" },
  { status: "completed", label: "Completed", icon: "ok" },
  { status: "failed", label: "Failed", icon: "failed" },
  { status: "crashed", label: "Crashed", icon: "crashed" },
  { status: "interrupted", label: "Interrupted", icon: "interrupted" },
  { status: "cancelled", label: "Cancelled", icon: "cancelled" },
];

export function States({ search, change }: { search: RunsSearch; change: Change }) {
  return (
    <fieldset className="runs-states">
      <legend className="visually-hidden">State</legend>
      {STATES.map(({ status, label, icon }) => (
        <Button
          key={label}
          look="quiet"
          size="small"
          aria-pressed={search.status === status}
          onClick={() => change({ status })}
          className="runs-state"
        >
          {icon !== undefined && (
            <span className={names("ui-status-icon", `ui-ink-${icon}`)}>
              <Icon name={icon} size={14} />
            </span>
          )}
          {label}
        </Button>
      ))}
    </fieldset>
  );
}
