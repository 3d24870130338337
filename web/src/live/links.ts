/**
 * How a tab reaches the hub. However many tabs there are, the browser has one connection to the server: HTTP/1.1 allows six per server,
 * and every tab would take one for good.
 */
import { Hub } from "./hub";
import { newName } from "./identity";
import type { FromTab, ToTab } from "./messages";
import type { World } from "./stream";

export interface Link {
  send: (message: FromTab) => void;
  close: () => void;
}

export type Receive = (message: ToTab) => void;

export function linked(receive: Receive): Link {
  if (typeof SharedWorker === "undefined") return withoutWorker(receive);
  let link: Link;
  try {
    link = shared(receive, () => {
      link = withoutWorker(receive);
      receive({ type: "who" });
    });
  } catch {
    link = withoutWorker(receive); // A browser may forbid it, in private windows for example.
  }
  return { send: (message) => link.send(message), close: () => link.close() };
}

function withoutWorker(receive: Receive): Link {
  if (typeof BroadcastChannel !== "undefined" && navigator.locks !== undefined) {
    return elected(receive, new BroadcastChannel(NAME), navigator.locks);
  }
  return alone(receive);
}

const NAME = "penstock.live";

/** The hub is in a SharedWorker. */
function shared(receive: Receive, whenBroken: () => void): Link {
  const worker = new SharedWorker(new URL("./worker.ts", import.meta.url), { type: "module", name: NAME });
  worker.onerror = whenBroken;
  worker.port.onmessage = (event: MessageEvent<ToTab>) => receive(event.data);
  return {
    send: (message) => worker.port.postMessage(message),
    close: () => worker.port.close(),
  };
}

/** Every tab has a hub of its own. */
export function alone(receive: Receive, world?: World): Link {
  const hub = new Hub((_, message) => receive(message), world);
  return { send: (message) => hub.receive("", message), close: () => hub.close() };
}

interface Letter {
  /** A tab, or `hub`, or `all` tabs. */
  to: string;
  from: string;
  message: FromTab | ToTab;
}

export interface Channel {
  postMessage: (letter: Letter) => void;
  onmessage: ((event: MessageEvent<Letter>) => void) | null;
  close: () => void;
}

export interface Locks {
  request: (name: string, options: { signal: AbortSignal }, held: () => Promise<void>) => Promise<unknown>;
}

/** The hub is in the tab that holds a lock. When that tab goes, the next one gets the lock, and asks all others what they want. */
export function elected(receive: Receive, channel: Channel, locks: Locks, world?: World): Link {
  const me = newName();
  const leaving = new AbortController();
  let hub: Hub | null = null;

  const post = (to: string, message: ToTab) => {
    if (to === me || to === "all") receive(message);
    if (to !== me) channel.postMessage({ to, from: me, message });
  };
  channel.onmessage = ({ data }) => {
    if (data.to === "hub") hub?.receive(data.from, data.message as FromTab);
    else if (data.to === me || data.to === "all") receive(data.message as ToTab);
  };
  locks
    .request(NAME, { signal: leaving.signal }, () => {
      if (leaving.signal.aborted) return Promise.resolve();
      hub = new Hub(post, world);
      post("all", { type: "who" });
      return new Promise<void>((resolve) => leaving.signal.addEventListener("abort", () => resolve()));
    })
    .catch(() => undefined); // Aborted while it waited.

  return {
    send: (message) => {
      if (hub !== null) hub.receive(me, message);
      else channel.postMessage({ to: "hub", from: me, message });
    },
    close: () => {
      hub?.close();
      hub = null;
      leaving.abort();
      channel.close();
    },
  };
}
