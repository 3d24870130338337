import { describe, expect, it } from "vitest";
import type { Moment } from "../context";
import { readLine, runSearch } from "../search";
import { countsOf, crumbsOf, offered } from "./facts";
import { titleOf } from "./selection";

const inside = (scope: string, name: string, parent: string): Moment["executions"][number] => ({
  scope,
  name,
  parent,
  kind: "playbook",
  status: "ok",
  node: null,
  started_at: 0,
  ended_at: null,
});

describe("the head of a run", () => {
  it("shows the way into an execution", () => {
    const executions = [inside("a@1/", "hotels", ""), inside("a@1/b@2/", "rooms", "a@1/")];
    expect(crumbsOf({ name: "cities", scope: "a@1/b@2/", executions }).map((crumb) => crumb.label)).toEqual([
      "cities",
      "hotels",
      "rooms",
    ]);
    expect(crumbsOf({ name: "cities", scope: "", executions })).toEqual([{ scope: "", label: "cities" }]);
    expect(crumbsOf({ name: "cities", scope: "gone", executions: [] }).map((crumb) => crumb.label)).toEqual([
      "cities",
      "gone",
    ]);
  });
  it("counts what there is, events first", () => {
    expect(countsOf({ iterations: 0, steps: 2, events: 24, open_leases: 1 })).toEqual([
      ["Events", 24],
      ["Steps", 2],
      ["Open leases", 1],
    ]);
  });
});

describe("what is offered", () => {
  it("is what can be done in a state", () => {
    const of = (status: string, failed = 0) => {
      const { cancel, resume, failedOnly } = offered(status, failed);
      return `${cancel ? "cancel " : ""}${resume ? "resume " : ""}${failedOnly}`;
    };
    expect(of("running")).toBe("cancel no");
    expect(of("crashed")).toBe("cancel resume no");
    expect(of("interrupted")).toBe("cancel resume no");
    expect(of("failed", 3)).toBe("resume choice");
    expect(of("completed")).toBe("no");
    expect(of("completed", 3)).toBe("resume only");
    expect(of("cancelled")).toBe("no");
  });
});

describe("the address", () => {
  it("holds only what is known", () => {
    expect(runSearch({ view: "timeline", panel: "none", at: "12", node: "load", edge: "", event: "-1" })).toMatchObject(
      {
        view: "timeline",
        panel: "none",
        at: 12,
        node: "load",
        edge: undefined,
        event: undefined,
      },
    );
    expect(runSearch({ view: "<script>", panel: "nonsense", at: "1e99" })).toMatchObject({
      view: undefined,
      panel: undefined,
      at: undefined,
    });
  });
  it("holds a line of a file", () => {
    expect(readLine("C:/jobs/orders.yaml:12")).toEqual({ file: "C:/jobs/orders.yaml", line: 12 });
    expect(readLine("orders.yaml")).toBeNull();
  });
});

describe("the selection", () => {
  it("is said in a few words", () => {
    const none = { node: null, part: null, edge: null, graph: undefined };
    expect(titleOf(none)).toBe("The run");
    expect(titleOf({ ...none, node: "load", part: "load@2" })).toBe("load@2");
    expect(titleOf({ ...none, edge: "7" })).toBe("link 7");
  });
});
