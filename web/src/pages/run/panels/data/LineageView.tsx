/** What a column is made of, and what is made of it: one line for each way, from left to right as the rows go. */
import { useQuery } from "@tanstack/react-query";
import { useEffect, useMemo, useRef } from "react";
import { ErrorState, Icon, IconButton, Loading, names } from "@/ui";
import { useRunPage } from "../../context";
import { askLineage } from "../ask";
import { type Field, type Way, type Ways, waysOf } from "./lineage";

interface LineageViewProps {
  field: Field;
  onField: (field: Field) => void;
  onClose: () => void;
}

export function LineageView({ field, onField, onClose }: LineageViewProps) {
  const { run } = useRunPage();
  const { data, error, refetch } = useQuery({
    queryKey: ["run", run, "lineage"],
    queryFn: ({ signal }) => askLineage(run, signal),
    staleTime: Number.POSITIVE_INFINITY,
  });
  const back = useMemo(() => data && waysOf(data.steps, field, "back"), [data, field]);
  const on = useMemo(() => data && waysOf(data.steps, field, "on"), [data, field]);
  const box = useRef<HTMLElement>(null);
  // biome-ignore lint/correctness/useExhaustiveDependencies: whatever is asked for is brought into sight.
  useEffect(() => {
    // Newer browsers answer with a promise, which an effect must not hand on.
    void box.current?.scrollIntoView({ block: "nearest" });
  }, [field, back]);
  return (
    <section ref={box} className="rp-lineage" aria-label={`Lineage of ${field.column}`}>
      <header>
        <h2>
          Lineage of{" "}
          <span className="mono">
            {field.component}.{field.column}
          </span>
        </h2>
        <IconButton icon="close" label="Close the lineage" size="small" onClick={onClose} />
      </header>
      {error !== null ? (
        <ErrorState error={error} title="The lineage could not be determined" onRetry={() => void refetch()} />
      ) : back === undefined || on === undefined ? (
        <Loading rows={3} label="Loading the lineage" />
      ) : (
        <>
          <Direction title="Comes from" ways={back} field={field} onField={onField} nothing="It begins here." />
          <Direction title="Goes to" ways={on} field={field} onField={onField} nothing="It goes nowhere further." />
        </>
      )}
    </section>
  );
}

interface DirectionProps {
  title: string;
  ways: Ways;
  field: Field;
  onField: (field: Field) => void;
  nothing: string;
}

function Direction({ title, ways, field, onField, nothing }: DirectionProps) {
  return (
    <div className="rp-lineage-direction">
      <h3>{title}</h3>
      {ways.ways.length === 0 ? (
        <p className="quiet">{nothing}</p>
      ) : (
        <ul>
          {ways.ways.map((way) => (
            <li key={way.map((one) => `${one.component}.${one.port}.${one.column}`).join(">")}>
              <OneWay way={way} field={field} onField={onField} />
            </li>
          ))}
        </ul>
      )}
      {ways.isCut && <p className="quiet">There are more paths than are listed here.</p>}
    </div>
  );
}

function OneWay({ way, field, onField }: { way: Way; field: Field; onField: (field: Field) => void }) {
  const { select } = useRunPage();
  return (
    <>
      {way.map((one, at) => {
        const isSelf = one.component === field.component && one.column === field.column;
        const isSameName = at > 0 && way[at - 1]?.column === one.column;
        return (
          <span key={`${one.component}.${one.port}`} className="rp-lineage-hop">
            {at > 0 && <Icon name="arrow-right" size={12} />}
            <button
              type="button"
              className={names("rp-chip", isSelf && "rp-lineage-self")}
              title={`${one.component}.${one.port ?? ""} ${one.column}`}
              onClick={() => {
                select(one.component);
                onField(one);
              }}
            >
              <span className="rp-lineage-component">{one.component}</span>
              {!isSameName && <span className="mono">.{one.column}</span>}
            </button>
          </span>
        );
      })}
    </>
  );
}
