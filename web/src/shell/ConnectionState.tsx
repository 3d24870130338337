import { useConnection } from "@/api/connection";
import { Icon, names, useNow } from "@/ui";

/** Whether what is shown is live. A server that went away is said loudly: what is on the screen is then from before. */
export function ConnectionState() {
  const { isReachable, live, nextTry } = useConnection();
  const isLost = !isReachable || live === "lost";
  const now = useNow(isLost && nextTry !== null ? 1000 : null);
  if (isLost) {
    const seconds = nextTry === null ? 0 : Math.max(0, Math.ceil((nextTry - now) / 1000));
    return (
      <div className="shell-connection shell-connection-lost" role="status">
        <Icon name="interrupted" size={14} />
        The server is not answering{seconds > 0 ? `; next try in ${seconds} s` : "; trying again"}
      </div>
    );
  }
  return (
    <div className={names("shell-connection", live === "live" && "shell-connection-live")} role="status">
      {live === "off" ? null : (
        <>
          <span className="shell-dot" />
          {live === "live" ? "Live" : "Connecting"}
        </>
      )}
    </div>
  );
}
