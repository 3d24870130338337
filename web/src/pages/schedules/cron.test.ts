import { describe, expect, it } from "vitest";
import { inWords, inZone, zoned } from "./cron";

describe("inWords", () => {
  it.each([
    ["* * * * *", "every minute"],
    ["*/5 * * * *", "every 5 minutes"],
    ["0 * * * *", "every hour, on the hour"],
    ["15,45 * * * *", "every hour at :15 and :45"],
    ["0 */2 * * *", "every 2 hours, on the hour"],
    ["0 6 * * *", "at 06:00"],
    ["30 6,18 * * *", "at 06:30 and 18:30"],
    ["0 6 * * 1-5", "at 06:00 from Monday to Friday"],
    ["0 6 * * mon,WED", "at 06:00 on Monday and Wednesday"],
    ["0 0 * * 7", "at 00:00 on Sunday"],
    ["0 0 1 * *", "at 00:00 on the 1st"],
    ["0 0 1,15 * 1", "at 00:00 on the 1st and the 15th or on Monday"],
    ["0 0 1 1 *", "at 00:00 on the 1st in January"],
    ["0 0 L * *", "at 00:00 on the last day of the month"],
    ["*/10 8-17 * * *", "every 10 minutes from 08:00 to 17:59"],
    ["@daily", "at 00:00"],
  ])("says %s as %s", (cron, words) => {
    expect(inWords(cron)).toBe(words);
  });

  it.each(["", "nonsense", "61 * * * *", "0 6 * *", "0 6 * * xyz", "1-59/7 3 * * *"])(
    "says nothing about %j",
    (cron) => {
      expect(inWords(cron)).toBeNull();
    },
  );
});

describe("zoned", () => {
  it("shows a time as the clock of its zone does", () => {
    expect(zoned("2026-03-29T02:30:00+01:00")).toEqual({ day: "Sun 2026-03-29", clock: "02:30", offset: "+01:00" });
    expect(zoned("2026-03-29T02:30:00Z").offset).toBe("+00:00");
  });
});

describe("inZone", () => {
  it("shows a moment in another zone, in summer and in winter", () => {
    expect(inZone("2026-11-01T01:30:00Z", "Europe/Berlin")).toBe("2026-11-01T02:30:00+01:00");
    expect(inZone("2026-07-01T22:30:00Z", "Europe/Berlin")).toBe("2026-07-02T00:30:00+02:00");
    expect(inZone("2026-07-01T22:30:00Z", "UTC")).toBe("2026-07-01T22:30:00+00:00");
  });

  it("leaves alone what it does not know", () => {
    expect(inZone("2026-07-01T22:30:00Z", "Nowhere/Nowhere")).toBe("2026-07-01T22:30:00Z");
    expect(inZone("soon", "UTC")).toBe("soon");
  });
});
