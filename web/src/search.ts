/** Search parameters are plain text in the address: `?at=42&node=load`. Pages say in their `search.ts` what they make of them. */
export type RawSearch = Record<string, string>;

export function parseSearch(text: string): RawSearch {
  return Object.fromEntries(new URLSearchParams(text));
}

export function stringifySearch(search: Record<string, unknown>): string {
  const found = Object.entries(search).filter(([, value]) => value !== undefined && value !== null && value !== "");
  const text = new URLSearchParams(found.map(([name, value]) => [name, String(value)])).toString();
  return text === "" ? "" : `?${text}`;
}

/** A text, or nothing. */
export function text(value: unknown): string | undefined {
  return typeof value === "string" && value !== "" ? value : undefined;
}

/** A whole number that is not negative, or nothing. */
export function whole(value: unknown): number | undefined {
  const found =
    typeof value === "number" ? value : typeof value === "string" && value !== "" ? Number(value) : Number.NaN;
  return Number.isSafeInteger(found) && found >= 0 ? found : undefined;
}

/** One of these, or nothing. */
export function oneOf<T extends string>(value: unknown, known: readonly T[]): T | undefined {
  return known.find((one) => one === value);
}

/** True for `true` and `1`. */
export function flag(value: unknown): true | undefined {
  return value === true || value === "true" || value === "1" ? true : undefined;
}
