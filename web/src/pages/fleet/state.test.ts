import { describe, expect, it } from "vitest";
import { ageNow, canBeTaken, inOrder, type Lease, nodeOf, parted, stateOf, type Worker } from "./state";

const worker = (name: string, change: Partial<Worker> = {}): Worker => ({
  id: name,
  name,
  pool: "default",
  slots: 4,
  can: ["python", "sql"],
  version: "1",
  held: 0,
  age_s: 1,
  is_alive: true,
  is_draining: false,
  is_inside: false,
  ...change,
});

const lease = (change: Partial<Lease> = {}): Lease => ({
  key: "run1/fetch@1",
  execution_id: "run1",
  pool: "default",
  attempt: 1,
  worker: null,
  age_s: 1,
  left_s: null,
  needs: ["python"],
  ...change,
});

describe("the fleet", () => {
  it("calls a worker lost when it is not alive, whatever it was doing", () => {
    expect(stateOf(worker("a", { is_alive: false, is_draining: true }))).toBe("lost");
    expect(stateOf(worker("a", { is_draining: true }))).toBe("draining");
  });

  it("shows the lost ones last", () => {
    expect(inOrder([worker("a", { is_alive: false }), worker("c"), worker("b")]).map((one) => one.name)).toEqual([
      "b",
      "c",
      "a",
    ]);
  });

  it("lets the age of a heartbeat go on between two answers", () => {
    expect(ageNow(1.5, 10_000, 12_000)).toBe(3500);
    expect(ageNow(1.5, 10_000, 9_000)).toBe(1500);
  });

  it("parts leases, and puts what has waited longest first", () => {
    const { held, waiting } = parted([
      lease({ key: "a" }),
      lease({ key: "b", age_s: 9 }),
      lease({ key: "c", worker: "w" }),
    ]);
    expect(held.map((one) => one.key)).toEqual(["c"]);
    expect(waiting.map((one) => one.key)).toEqual(["b", "a"]);
  });

  it("knows when no worker can take a lease", () => {
    expect(canBeTaken(lease(), [worker("a")])).toBe(true);
    expect(canBeTaken(lease({ needs: ["gpu"] }), [worker("a")])).toBe(false);
    expect(canBeTaken(lease(), [worker("a", { is_draining: true })])).toBe(false);
    expect(canBeTaken(lease({ pool: "big" }), [worker("a")])).toBe(false);
  });

  it("finds the node in the key of a lease", () => {
    expect(nodeOf(lease())).toBe("fetch");
    expect(nodeOf(lease({ key: "run1/load@2[5]" }))).toBe("load");
    expect(nodeOf(lease({ key: "run1" }))).toBeNull();
  });
});
