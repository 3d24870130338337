// @vitest-environment happy-dom
import { cleanup, fireEvent, render, screen } from "@testing-library/react";
import { afterEach, describe, expect, it } from "vitest";
import {
  bytes,
  counted,
  lasting,
  Prose,
  pathEnd,
  plural,
  relative,
  STATES,
  StatusBadge,
  shortened,
  stateOf,
  Tabs,
  useShortcuts,
} from ".";
import { iconNames } from "./Icon";
import { ValueTree } from "./ValueTree";

afterEach(cleanup);

describe("wording", () => {
  it("of durations is that of the command line", () => {
    const said = [0, 3, 99, 140, 9_949, 9_951, 59_400, 184_000, 3_600_000, 7_830_000, 90_000_000].map(lasting);
    expect(said).toEqual([
      "0 ms",
      "3 ms",
      "99 ms",
      "0.1 s",
      "9.9 s",
      "10 s",
      "59 s",
      "3 min 4 s",
      "1 h",
      "2 h 11 min",
      "1 d 1 h",
    ]);
  });

  it("of times says how long ago, or in how long", () => {
    const now = 1_000_000_000_000;
    const said = [0, 15, 75, 7_200, 3 * 86_400, 800 * 86_400].map((seconds) => relative(now - seconds * 1000, now));
    expect(said).toEqual(["just now", "15 s ago", "1 min ago", "2 h ago", "3 d ago", "2 y ago"]);
    expect(relative(now + 90_000, now)).toBe("in 1 min");
  });

  it("of numbers has separators, or is short", () => {
    expect([counted(1_234_567), shortened(999), shortened(1_234), shortened(1_234_567), shortened(123_456)]).toEqual([
      "1,234,567",
      "999",
      "1.2 k",
      "1.2 M",
      "123 k",
    ]);
    expect([plural(1, "run"), plural(2_000, "run"), bytes(340), bytes(1_200_000)]).toEqual([
      "1 run",
      "2,000 runs",
      "340 B",
      "1.2 MB",
    ]);
  });
});

describe("states", () => {
  it("have an icon of their own, each", () => {
    for (const state of STATES) expect(iconNames).toContain(state);
    expect(["completed", "OK", "error", "pending", "never heard of"].map(stateOf)).toEqual([
      "ok",
      "ok",
      "failed",
      "waiting",
      "waiting",
    ]);
  });

  it("are said in a word", () => {
    render(<StatusBadge state="interrupted" isCrashed />);
    expect(screen.getByText("Crashed").dataset.state).toBe("crashed");
  });
});

describe("what users wrote", () => {
  it("is never markup", () => {
    const { container } = render(<Prose text="`a <b>x</b>` and <img src=x onerror=alert(1)> ``" />);
    expect(container.querySelector("b, img")).toBeNull();
    expect(container.textContent).toBe("a <b>x</b> and <img src=x onerror=alert(1)> ``");
    expect(container.querySelector("code")?.textContent).toBe("a <b>x</b>");
  });
});

it("a value of ten thousand entries is a few rows of the page", () => {
  const value = Array.from({ length: 10_000 }, (_, id) => ({ id }));
  const { container } = render(<ValueTree value={value} label="JSON" />);
  expect(container.querySelectorAll("[role=treeitem]").length).toBeLessThan(100);
});

describe("tabs", () => {
  it("are moved between with arrows, and skip what is disabled", () => {
    const chosen: string[] = [];
    const tabs = [
      { id: "a", label: "A" },
      { id: "b", label: "B", isDisabled: true },
      { id: "c", label: "C" },
    ];
    render(
      <Tabs label="Views" tabs={tabs} chosen="a" onChoose={(id) => chosen.push(id)}>
        content
      </Tabs>,
    );
    const list = screen.getByRole("tablist");
    for (const key of ["ArrowRight", "ArrowLeft", "End", "Home", "x"]) fireEvent.keyDown(list, { key });
    expect(chosen).toEqual(["c", "c", "c", "a"]);
    expect(screen.getByRole("tabpanel").getAttribute("aria-labelledby")).toBe(screen.getByText("A").id);
  });
});

describe("shortcuts", () => {
  function Page({ heard }: { heard: string[] }) {
    useShortcuts("Page", [
      { keys: ["j", "Enter"], label: "Next", run: () => heard.push("next") },
      { keys: ["g r"], label: "Runs", run: () => heard.push("runs") },
      { keys: ["Mod+s"], label: "Save", run: () => heard.push("save"), isGlobal: true },
    ]);
    return (
      <>
        <input aria-label="field" />
        <button type="button">press</button>
      </>
    );
  }

  it("do nothing while somebody types, unless they are global", () => {
    const heard: string[] = [];
    render(<Page heard={heard} />);
    fireEvent.keyDown(document.body, { key: "j" });
    fireEvent.keyDown(screen.getByLabelText("field"), { key: "j" });
    fireEvent.keyDown(screen.getByText("press"), { key: "Enter" });
    fireEvent.keyDown(screen.getByLabelText("field"), { key: "s", ctrlKey: true });
    fireEvent.keyDown(document.body, { key: "g" });
    fireEvent.keyDown(document.body, { key: "r" });
    expect(heard).toEqual(["next", "save", "runs"]);
    cleanup();
    fireEvent.keyDown(document.body, { key: "j" });
    expect(heard).toHaveLength(3);
  });
});

describe("pathEnd", () => {
  it("shows the end of a path, which tells files apart", () => {
    expect([pathEnd("/a/b/c/orders.yaml"), pathEnd("c/orders.yaml")]).toEqual(["…/c/orders.yaml", "c/orders.yaml"]);
  });
});
