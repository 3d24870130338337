/**
 * Parts of the page that are loaded when they are first shown.
 *
 * Law: a part that cannot be loaded does not take the rest of the page with it. While the server does not answer, it is waited for;
 * when it answers and the part is still missing, the page was built anew since this tab was opened, and the tab loads it again: once,
 * because a second time would not help.
 */
const PAUSE_MS = 1000;
const RELOADED = "penstock:reloaded";
const LATELY_MS = 30_000;

export interface Surroundings {
  answers: () => Promise<boolean>;
  pause: (ms: number) => Promise<void>;
  now: () => number;
  storage: Pick<Storage, "getItem" | "setItem">;
  reload: () => void;
}

const browser: Surroundings = {
  answers: () =>
    fetch("/health", { cache: "no-store" }).then(
      (answer) => answer.ok,
      () => false,
    ),
  pause: (ms) => new Promise((done) => setTimeout(done, ms)),
  now: () => Date.now(),
  get storage() {
    return sessionStorage;
  },
  reload: () => location.reload(),
};

/** The same `import()`, which does not give up while the server is away. */
export function chunk<T>(load: () => Promise<T>, around: Surroundings = browser): () => Promise<T> {
  return async () => {
    try {
      return await load();
    } catch {
      while (!(await around.answers())) await around.pause(PAUSE_MS);
    }
    try {
      return await load();
    } catch (error) {
      const last = Number(around.storage.getItem(RELOADED) ?? 0);
      if (around.now() - last < LATELY_MS) throw error;
      around.storage.setItem(RELOADED, String(around.now()));
      around.reload();
      return new Promise<T>(() => {});
    }
  };
}
