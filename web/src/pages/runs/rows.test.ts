import { describe, expect, it } from "vitest";
import type { Run } from "@/live";
import { canCancel, canResume, matches, merged, momentOf, rowsOf } from "./rows";

const NOW = Date.parse("2026-11-18T12:00:00Z");

function run(id: string, more: Partial<Run> = {}): Run {
  return {
    execution_id: id,
    kind: "playbook",
    name: "orders",
    label: null,
    status: "running",
    crashed: false,
    failed_iterations: 0,
    file: "jobs/orders.yaml",
    started_at: "2026-11-18T11:00:00.000Z",
    ended_at: null,
    duration_ms: null,
    events: 5,
    trace_id: null,
    reason: null,
    ...more,
  };
}

const ids = (rows: Run[]) => rows.map((row) => row.execution_id);

describe("filters", () => {
  it("say of a run of the stream what the server would say", () => {
    const one = run("7d3ab", { label: "nightly", kind: "job" });
    for (const search of [
      {},
      { status: "running" as const },
      { kind: "job" as const },
      { name: "orders" },
      { name: "nightly" },
      { label: "nightly" },
      { since: "2h" },
      { until: "30m" },
      { q: "ORDERS.yaml" },
      { q: "d3a" },
    ]) {
      expect(matches(one, search, NOW), JSON.stringify(search)).toBe(true);
    }
    for (const search of [
      { status: "failed" as const },
      { kind: "playbook" as const },
      { name: "order" },
      { label: "orders" },
      { since: "30m" },
      { until: "2h" },
      { q: "invoices" },
    ]) {
      expect(matches(one, search, NOW), JSON.stringify(search)).toBe(false);
    }
  });

  it("tell a crashed run from an interrupted one", () => {
    const crashed = run("a", { status: "interrupted", crashed: true });
    expect(matches(crashed, { status: "crashed" }, NOW)).toBe(true);
    expect(matches(crashed, { status: "interrupted" }, NOW)).toBe(false);
  });

  it("read times as the server does", () => {
    expect(momentOf("90m", NOW)).toBe(NOW - 5_400_000);
    expect(momentOf("2026-11-18T11:00:00Z", NOW)).toBe(NOW - 3_600_000);
    expect(momentOf("yesterday", NOW)).toBeNull();
  });
});

describe("rows", () => {
  const old = run("old", { started_at: "2026-11-18T09:00:00.000Z", status: "completed", events: 20 });
  const mid = run("mid", { started_at: "2026-11-18T10:00:00.000Z" });

  it("have new runs first, and older ones only with their page", () => {
    const heard = merged(new Map(), [run("new"), run("ancient", { started_at: "2026-11-17T09:00:00.000Z" })], 2);
    expect(ids(rowsOf([mid, old], 1, true, heard, {}, NOW))).toEqual(["new", "mid", "old"]);
    expect(ids(rowsOf([mid, old], 1, false, heard, {}, NOW))).toEqual(["new", "mid", "old", "ancient"]);
  });

  it("show what is newest, whichever way it came", () => {
    const heard = merged(new Map(), [{ ...mid, events: 9, status: "failed" }], 1);
    expect(rowsOf([mid], 2, false, heard, {}, NOW)[0]?.status).toBe("failed");
    expect(rowsOf([{ ...mid, events: 12 }], 2, false, heard, {}, NOW)[0]?.status).toBe("running");
    const crashed = merged(new Map(), [{ ...mid, status: "interrupted", crashed: true }], 3);
    expect(rowsOf([mid], 2, false, crashed, {}, NOW)[0]?.crashed).toBe(true);
    expect(rowsOf([mid], 4, false, crashed, {}, NOW)[0]?.crashed).toBe(false);
  });

  it("leave when they no longer match", () => {
    const heard = merged(new Map(), [{ ...mid, events: 9, status: "completed" }], 2);
    expect(rowsOf([mid], 1, false, heard, { status: "running" }, NOW)).toEqual([]);
  });

  it("keep the reason, which the stream does not tell", () => {
    const failed = { ...mid, status: "failed", events: 9 };
    const heard = merged(new Map(), [{ ...failed, reason: "no such file" }], 1);
    expect(merged(heard, [failed], 2).get("mid")?.run.reason).toBe("no such file");
    expect(merged(heard, [{ ...failed, status: "running", events: 11 }], 2).get("mid")?.run.reason).toBeNull();
  });
});

it("offers what a run can be asked for", () => {
  expect([canCancel(run("a")), canResume(run("a"))]).toEqual([true, false]);
  expect([canCancel(run("a", { status: "failed" })), canResume(run("a", { status: "failed" }))]).toEqual([false, true]);
  const crashed = run("a", { status: "interrupted", crashed: true });
  expect([canCancel(crashed), canResume(crashed)]).toEqual([true, true]);
  expect(canResume(run("a", { status: "completed", failed_iterations: 2 }))).toBe(true);
  expect(canResume(run("a", { status: "completed" }))).toBe(false);
});
