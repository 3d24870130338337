import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { Latest } from "./latest";

interface Request {
  wanted: number;
  signal: AbortSignal;
  resolve: (answer: string) => void;
  reject: (error: Error) => void;
}

function watched(apart = 0) {
  const requests: Request[] = [];
  const seen: string[] = [];
  const latest = new Latest<number, string>({
    ask: (wanted, signal) => new Promise((resolve, reject) => requests.push({ wanted, signal, resolve, reject })),
    answered: (wanted, answer) => seen.push(`${wanted} ${answer}`),
    failed: (wanted, error) => seen.push(`${wanted} ${(error as Error).message}`),
    patience: 300,
    apart,
  });
  return { latest, requests, seen };
}

describe("asking for the newest", () => {
  beforeEach(() => vi.useFakeTimers());
  afterEach(() => vi.useRealTimers());

  it("asks at once, and leaves out what is overtaken while an answer is awaited", async () => {
    const { latest, requests, seen } = watched();
    for (let one = 1; one <= 60; one += 1) latest.want(one);
    expect(requests.map((one) => one.wanted)).toEqual([1]);
    requests[0]?.resolve("a");
    await vi.advanceTimersByTimeAsync(0);
    expect(requests.map((one) => one.wanted)).toEqual([1, 60]);
    requests[1]?.resolve("b");
    await vi.advanceTimersByTimeAsync(0);
    expect(seen).toEqual(["1 a", "60 b"]);
  });

  it("aborts a slow request when another is wanted, and ignores its late answer", async () => {
    const { latest, requests, seen } = watched();
    latest.want(1);
    latest.want(2);
    await vi.advanceTimersByTimeAsync(299);
    expect(requests).toHaveLength(1);
    await vi.advanceTimersByTimeAsync(1);
    expect(requests[0]?.signal.aborted).toBe(true);
    requests[0]?.resolve("late");
    requests[1]?.resolve("b");
    await vi.advanceTimersByTimeAsync(0);
    expect(seen).toEqual(["2 b"]);
  });

  it("lets a slow request finish when nothing else is wanted", async () => {
    const { latest, requests, seen } = watched();
    latest.want(1);
    await vi.advanceTimersByTimeAsync(5000);
    requests[0]?.resolve("a");
    await vi.advanceTimersByTimeAsync(0);
    expect(seen).toEqual(["1 a"]);
  });

  it("goes on after a failure, and says what failed", async () => {
    const { latest, requests, seen } = watched();
    latest.want(1);
    latest.want(2);
    requests[0]?.reject(new Error("gone"));
    await vi.advanceTimersByTimeAsync(0);
    requests[1]?.resolve("b");
    await vi.advanceTimersByTimeAsync(0);
    expect(seen).toEqual(["1 gone", "2 b"]);
  });

  it("begins at most four a second when told so", async () => {
    const { latest, requests } = watched(250);
    for (let ms = 0; ms < 1000; ms += 10) {
      latest.want(ms);
      requests.at(-1)?.resolve("");
      await vi.advanceTimersByTimeAsync(10);
    }
    expect(requests.length).toBeLessThanOrEqual(5);
  });

  it("says nothing after it was stopped", async () => {
    const { latest, requests, seen } = watched();
    latest.want(1);
    latest.stop();
    requests[0]?.resolve("a");
    await vi.advanceTimersByTimeAsync(0);
    expect(seen).toEqual([]);
    expect(latest.isBusy).toBe(false);
  });
});
