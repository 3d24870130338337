/** How long after the beginning of a run, as a row of a list says it: `+0.123`, `+1:02.4`, `+3:04:05`. */
export function offset(seconds: number): string {
  const sign = seconds <= -0.0005 ? "−" : "+";
  const away = Math.abs(seconds);
  if (away < 60) return `${sign}${away.toFixed(3)}`;
  const minutes = Math.floor(away / 60);
  const two = (value: number) => String(value).padStart(2, "0");
  if (away < 3600) return `${sign}${minutes}:${(away % 60).toFixed(1).padStart(4, "0")}`;
  return `${sign}${Math.floor(minutes / 60)}:${two(minutes % 60)}:${two(Math.floor(away % 60))}`;
}

/** A time of the log, in seconds since the epoch. `Date` alone would cut it to milliseconds, and put events before their run. */
export function secondsOf(iso: string): number {
  const fraction = /\.(\d+)/.exec(iso);
  const whole = Date.parse(iso.replace(/\.\d+/, "")) / 1000;
  return fraction === null ? whole : whole + Number(`0.${fraction[1]}`);
}
