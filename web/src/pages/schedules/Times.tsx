import { Time } from "@/ui";
import { zoned } from "./cron";

/** Times as the clock of the zone shows them, and how far away they are. */
export function Times({ times }: { times: readonly string[] }) {
  return (
    <ol className="schedules-times">
      {times.map((time) => {
        const at = zoned(time);
        return (
          <li key={time}>
            <span>{at.day}</span> <strong>{at.clock}</strong> <span className="quiet">{at.offset}</span>{" "}
            <span className="quiet">
              <Time value={time} />
            </span>
          </li>
        );
      })}
    </ol>
  );
}
