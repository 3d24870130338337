/** All that one event says, and where it leads: its cause, its node, its moment. */
import { useQuery } from "@tanstack/react-query";
import { useEffect } from "react";
import { Badge, Button, CopyButton, exact, Facts, Icon, IconButton, Loading } from "@/ui";
import { ValueTree } from "@/ui/ValueTree";
import { useRunPage } from "../../context";
import { askEvents } from "../ask";
import { placeIn } from "../places";
import { findCause } from "./cause";
import { type Envelope, placeOf, toneOf } from "./event";
import type { EventPages } from "./pages";
import { summaryOf } from "./summary";

interface EventDetailProps {
  seq: number;
  event: Envelope | undefined;
  pages: EventPages;
  onClose: () => void;
}

export function EventDetail({ seq, event, pages, onClose }: EventDetailProps) {
  const page = useRunPage();
  useEffect(() => {
    if (event === undefined) void pages.one(seq);
  }, [seq, event, pages]);
  if (event === undefined) return <Loading rows={4} label="Loading the event" />;
  const place = placeIn(event.scope, page.moment?.executions ?? []);
  const tone = toneOf(event);
  const isHere = page.at === event.seq;
  const summary = summaryOf(event);

  function selectNode() {
    if (place.execution !== page.scope) page.stepInto(place.execution);
    page.select(place.node, place.part);
  }

  return (
    <section className="ev-detail" aria-label={`Event ${seq}`}>
      <header className="ev-detail-head">
        <Badge tone={tone === "plain" ? "neutral" : tone}>{event.event_type}</Badge>
        <span className="mono quiet">#{event.seq}</span>
        <span className="ev-detail-space" />
        <Button size="small" icon="timeline" disabled={isHere} onClick={() => page.goTo(event.seq)}>
          {isHere ? "At this moment" : "Go to this moment"}
        </Button>
        {place.node !== null && (
          <Button size="small" icon="graph" onClick={selectNode}>
            Select {place.node}
          </Button>
        )}
        <CopyButton text={() => JSON.stringify(event, null, 2)} label="Copy the event as JSON" />
        <IconButton icon="close" label="Close" size="small" onClick={onClose} />
      </header>
      {summary !== "" && <p className="ev-detail-summary">{summary}</p>}
      <div className="ev-detail-body">
        <Facts
          facts={[
            [
              "Time",
              <time key="time" dateTime={event.ts} className="mono ev-exact">
                {exact(new Date(event.ts))
                  .split("T")
                  .map((part) => (
                    <span key={part}>{part}</span>
                  ))}
              </time>,
            ],
            placeOf(event) !== "" && [
              "Place",
              <span key="place" className="mono">
                {placeOf(event)}
              </span>,
            ],
            event.iter_key !== null &&
              event.iter_key !== String(event.iter_index) && [
                "Key",
                <span key="key" className="mono">
                  {event.iter_key}
                </span>,
              ],
            [
              "Recorded by",
              event.worker_id === null ? (
                event.source
              ) : (
                <span key="worker" className="mono">
                  {event.worker_id}
                </span>
              ),
            ],
            ["Cause", <Cause key="cause" event={event} pages={pages} />],
          ]}
        />
        <div className="ev-payload">
          <ValueTree key={event.seq} value={event.payload} label="Payload of the event" maxHeight={10_000} hasCopy />
        </div>
      </div>
    </section>
  );
}

function Cause({ event, pages }: { event: Envelope; pages: EventPages }) {
  const page = useRunPage();
  const { data, isPending, isError, refetch } = useQuery({
    queryKey: ["run", page.run, "cause", event.cause],
    queryFn: ({ signal }) => findCause(event, pages, (request) => askEvents(page.run, { ...request, signal })),
    enabled: event.cause !== null,
    staleTime: Number.POSITIVE_INFINITY,
  });
  if (event.cause === null)
    return <span className="quiet">none: it starts something, or the server decided it by itself</span>;
  const name = event.cause.slice(event.execution_id.length + 1);
  if (isPending) return <span className="quiet">looking for {name} …</span>;
  if (isError) {
    return (
      <Button size="small" look="quiet" icon="refresh" onClick={() => void refetch()}>
        {name}: the server did not say
      </Button>
    );
  }
  if (data === null) return <span className="mono quiet">{name}</span>;
  return (
    <button type="button" className="rp-link" onClick={() => page.showEvent(data.seq)}>
      <Icon name="arrow-left" size={12} /> #{data.seq} <span className="mono">{data.event_type}</span>
      {placeOf(data) !== "" && <span className="mono"> {placeOf(data)}</span>}
    </button>
  );
}
