import type { Node, NodeProps } from "@xyflow/react";
import { memo, useContext } from "react";
import { Icon, lasting, names, StatusIcon } from "@/ui";
import { goingFor, useServerNow } from "../clock";
import { GraphContext } from "./actions";
import type { Box, Card } from "./picture";
import { useFrameState, useIsSelected, useMomentTime, useNodeState } from "./states";
import { boxName, cardName, detail, progress, retrying, seen, shares } from "./wording";

export type CardNode = Node<{ card: Card }, "card">;
export type BoxNode = Node<{ box: Box }, "box">;

/** The time that a duration is counted to: the clock, once a second, or the moment that is shown; only cards that run look. */
function useTime(isGoing: boolean): number {
  const { isLive } = useContext(GraphContext);
  const shown = useMomentTime(isGoing && !isLive);
  return useServerNow(isLive && isGoing ? 1000 : null, shown);
}

export const CardView = memo(function CardView({ data: { card } }: NodeProps<CardNode>) {
  const { select, open, stepInto, isLive } = useContext(GraphContext);
  const node = useNodeState(card.node?.id ?? null);
  const frame = useFrameState(card.node === null ? (card.frame?.id ?? null) : null);
  const isSelected = useIsSelected(card.id);
  const isOpen = node?.status === "running" || node?.status === "retrying" || frame?.status === "running";
  const now = useTime(isOpen);
  const { state, ms, isGoing } = seen(node, frame, now);
  const retry = node === undefined ? null : retrying(node, now);
  const more = node === undefined ? null : detail(node);
  const error = node?.error ?? frame?.error ?? null;
  const child = node?.children[0];
  const children = node?.children.length ?? 0;
  return (
    <div className={names("run-card", `ui-ink-${state}`, isSelected && "run-card-selected")} data-state={state}>
      <button
        type="button"
        className="run-card-face"
        data-graph-id={card.id}
        tabIndex={-1}
        aria-pressed={isSelected}
        title={error ?? node?.reason ?? undefined}
        onClick={() => select(card.id)}
        onDoubleClick={() => card.inside > 0 && open(card.id)}
      >
        <span className="visually-hidden">{cardName(card, node, frame, now)}</span>
        <span className="run-card-line" aria-hidden="true">
          <StatusIcon state={state} size={16} />
          <span className="run-card-title">{card.title}</span>
        </span>
        <span className="run-card-line run-card-small" aria-hidden="true">
          {retry !== null ? (
            <span className="run-card-type run-card-retry">{retry}</span>
          ) : (
            <span className="run-card-type">
              {card.isLoop && <Icon name="loop" size={12} />}
              {more ?? card.type}
            </span>
          )}
          {ms !== null && retry === null && (
            <span className="run-card-time">{isGoing && isLive ? goingFor(ms) : lasting(ms)}</span>
          )}
        </span>
        {card.isLoop && (
          <span className="run-card-fan" aria-hidden="true">
            {node?.fan ? (
              <>
                <span className="run-card-bar">
                  <span className="run-card-bar-ok" style={{ width: `${shares(node.fan).ok * 100}%` }} />
                  <span className="run-card-bar-failed" style={{ width: `${shares(node.fan).failed * 100}%` }} />
                </span>
                <span className="run-card-progress">{progress(node.fan)}</span>
              </>
            ) : (
              <span className="run-card-progress">{card.node?.loop ?? ""}</span>
            )}
          </span>
        )}
      </button>
      {card.inside > 0 && (
        <button
          type="button"
          className="run-card-open"
          tabIndex={-1}
          aria-label={`Open ${card.title}: ${card.inside} inside`}
          title={`Open: ${card.inside} inside`}
          onClick={() => open(card.id)}
        >
          <Icon name="expand" size={12} />
          <span aria-hidden="true">{card.inside}</span>
        </button>
      )}
      {child !== undefined && card.inside === 0 && (
        <button
          type="button"
          className="run-card-open"
          tabIndex={-1}
          aria-label={`Step into what ${card.title} runs${children > 1 ? `: the latest of ${children}` : ""}`}
          title={`Step into ${child}`}
          onClick={() => stepInto(child)}
        >
          <Icon name="arrow-right" size={12} />
          {children > 1 && <span aria-hidden="true">{children}</span>}
        </button>
      )}
    </div>
  );
});

export const BoxView = memo(function BoxView({ data: { box } }: NodeProps<BoxNode>) {
  const { select, close, isLive } = useContext(GraphContext);
  const node = useNodeState(box.opener?.id ?? null);
  const frame = useFrameState(box.frame.id);
  const isSelected = useIsSelected(box.id);
  const isRunning = (node ?? frame)?.status === "running" || node?.status === "retrying";
  const now = useTime(isRunning);
  const { state, ms, isGoing } = seen(node, frame, now);
  return (
    <div
      className={names("run-box", `ui-ink-${state}`, isSelected && "run-card-selected")}
      data-state={state}
      data-kind={box.frame.kind}
    >
      <div className="run-box-head">
        <button
          type="button"
          className="run-box-face"
          data-graph-id={box.id}
          tabIndex={-1}
          aria-pressed={isSelected}
          title={frame?.error ?? undefined}
          onClick={() => select(box.id)}
        >
          <span className="visually-hidden">{boxName(box, node, frame, now)}</span>
          <span className="run-box-words" aria-hidden="true">
            <StatusIcon state={state} size={14} />
            <span className="run-card-title">{box.title}</span>
            {box.opener !== null && <span className="run-card-small">{box.opener.type}</span>}
            {node?.fan && <span className="run-card-small run-card-progress">{progress(node.fan)}</span>}
            {ms !== null && <span className="run-card-time">{isGoing && isLive ? goingFor(ms) : lasting(ms)}</span>}
          </span>
        </button>
        <button
          type="button"
          className="run-card-close"
          tabIndex={-1}
          aria-label={`Close ${box.title}`}
          title="Close"
          onClick={() => close(box.id)}
        >
          <Icon name="collapse" size={12} />
        </button>
      </div>
    </div>
  );
});
