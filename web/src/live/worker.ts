/** The SharedWorker that holds the connection for all tabs. */
import { Hub } from "./hub";
import { newName } from "./identity";
import type { FromTab, ToTab } from "./messages";

const ports = new Map<string, MessagePort>();
const hub = new Hub((tab: string, message: ToTab) => ports.get(tab)?.postMessage(message));

(self as unknown as { onconnect: (event: MessageEvent) => void }).onconnect = (event) => {
  const port = event.ports[0];
  if (port === undefined) return;
  const name = newName();
  ports.set(name, port);
  port.onmessage = (message: MessageEvent<FromTab>) => {
    if (message.data.type === "want") ports.set(name, port);
    hub.receive(name, message.data);
    if (message.data.type === "bye") ports.delete(name);
  };
};
