import { describe, expect, it } from "vitest";
import type { Examined, Graph } from "./queries";
import { whyNot } from "./runnable";
import { type Examination, told } from "./useExamined";

const form = { kind: "job", name: "a", fields: [], contexts: [], is_open: true };
const graph = { kind: "job", digest: "1" } as unknown as Graph;
const valid: Examined = { status: "valid", problems: [], graph, form };
const found = (change: Partial<Examination>): Examination => ({
  answer: valid,
  graph: null,
  isStale: false,
  isPending: false,
  error: null,
  ...change,
});

describe("whyNot", () => {
  it("lets a valid document run", () => {
    expect(whyNot(found({}))).toBeNull();
  });

  it("says how many errors there are, and does not count warnings", () => {
    const problems = [
      { message: "x", severity: "error" },
      { message: "y", severity: "warning" },
    ];
    expect(whyNot(found({ answer: { ...valid, status: "invalid", problems } }))).toBe("1 error to fix first");
    expect(whyNot(found({ answer: { ...valid, problems: problems.slice(1) } }))).toBeNull();
  });

  it("waits for what is being checked, and refuses joblets", () => {
    expect(whyNot(found({ isPending: true }))).toBe("checking …");
    expect(whyNot(found({ answer: null, error: new Error("gone") }))).toBe("it cannot be checked right now");
    expect(whyNot(found({ answer: { ...valid, form: { ...form, kind: "joblet" } } }))).toContain("joblet");
  });
});

describe("told", () => {
  it("keeps the last graph while the text has none, and says that it is old", () => {
    const first = told(found({ answer: null }), valid);
    expect([first.graph, first.isStale]).toEqual([graph, false]);
    const broken = told(first, { ...valid, status: "invalid", graph: null });
    expect([broken.graph, broken.isStale]).toEqual([graph, true]);
    expect(told(broken, valid).isStale).toBe(false);
  });
});
