// @vitest-environment happy-dom
import { cleanup, fireEvent, render, screen } from "@testing-library/react";
import { afterEach, describe, expect, it, vi } from "vitest";
import { type Marks, type Moment, type RunPage, RunPageContext } from "../context";
import { TimeSlider } from "./TimeSlider";

const moment = { seq: 40, ts: 140, last_seq: 100, folded_to: 100, started_at: 100, is_live: false } as Moment;
const marks: Marks = {
  last_seq: 100,
  folded_to: 100,
  first_ts: 100,
  last_ts: 200,
  first_error: 42,
  marks: [
    { seq: 1, ts: 100, kind: "start", text: "the run began", node: null },
    { seq: 42, ts: 142, kind: "failure", text: "`<img src=x onerror=alert(1)>` failed", node: "load" },
  ],
  types: {},
};

function shown(at: number | null, last = 100, isGoing = false) {
  const onDrag = vi.fn();
  const page = { run: "r", at, moment: last === 0 ? undefined : moment, marks } as unknown as RunPage;
  render(
    <RunPageContext value={page}>
      <TimeSlider last={last} isGoing={isGoing} onDrag={onDrag} />
    </RunPageContext>,
  );
  return onDrag;
}

const press = (key: string, shiftKey = false) => fireEvent.keyDown(screen.getByRole("slider"), { key, shiftKey });

describe("the time slider", () => {
  afterEach(cleanup);

  it("says where it is, and when that was", () => {
    shown(40);
    const slider = screen.getByRole("slider");
    expect(slider.getAttribute("aria-valuetext")).toBe("event 40 of 100, 40 s after the start");
    expect(slider.getAttribute("aria-valuenow")).toBe("40");
  });

  it("goes through the events by keys, and follows the run at its end", () => {
    const onDrag = shown(40);
    press("ArrowLeft");
    press("ArrowRight", true);
    press("Home");
    press("End");
    expect(onDrag.mock.calls).toEqual([[39], [50], [1], [null]]);
  });

  it("jumps to the first failure and between marks", () => {
    const onDrag = shown(40);
    fireEvent.click(screen.getByRole("button", { name: "First failure" }));
    fireEvent.click(screen.getByRole("button", { name: "Previous mark" }));
    fireEvent.click(screen.getByRole("button", { name: "Next mark" }));
    expect(onDrag.mock.calls).toEqual([[42], [1], [42]]);
  });

  it("says how much is newer while the run goes on", () => {
    const onDrag = shown(40, 100, true);
    fireEvent.click(screen.getByRole("button", { name: "60 newer events; go live" }));
    expect(onDrag).toHaveBeenCalledWith(null);
  });

  it("is there before the first event", () => {
    shown(null, 0);
    expect(screen.queryByRole("slider")).toBeNull();
    expect(screen.getByText(/no events yet/)).toBeTruthy();
  });

  it("shows what a mark says as text", () => {
    shown(40);
    expect(document.querySelector("img")).toBeNull();
  });
});
