import { expect, it } from "vitest";
import { chunk, type Surroundings } from "./chunks";

function around(answers: boolean[] = []) {
  const kept = new Map<string, string>();
  const seen = { pauses: 0, reloads: 0, now: 1_000_000 };
  const surroundings: Surroundings = {
    answers: async () => answers.shift() ?? true,
    pause: async () => {
      seen.pauses += 1;
    },
    now: () => seen.now,
    storage: { getItem: (key) => kept.get(key) ?? null, setItem: (key, value) => void kept.set(key, value) },
    reload: () => {
      seen.reloads += 1;
    },
  };
  return { seen, surroundings };
}

function failing(times: number) {
  let tries = 0;
  return async () => {
    tries += 1;
    if (tries <= times) throw new TypeError("Failed to fetch dynamically imported module");
    return "the part";
  };
}

it("a part that is there is loaded", async () => {
  const { seen, surroundings } = around();
  expect(await chunk(failing(0), surroundings)()).toBe("the part");
  expect(seen.pauses).toBe(0);
});

it("while the server is away, a part is waited for", async () => {
  const { seen, surroundings } = around([false, false, true]);
  expect(await chunk(failing(1), surroundings)()).toBe("the part");
  expect(seen).toMatchObject({ pauses: 2, reloads: 0 });
});

it("a part of a page that was built anew is got by loading the page again, once", async () => {
  const { seen, surroundings } = around();
  const load = chunk(failing(9), surroundings);
  void load();
  await new Promise((done) => setTimeout(done));
  expect(seen.reloads).toBe(1);
  await expect(load()).rejects.toThrow("Failed to fetch");
  expect(seen.reloads).toBe(1);
  seen.now += 60_000;
  void load();
  await new Promise((done) => setTimeout(done));
  expect(seen.reloads).toBe(2);
});
