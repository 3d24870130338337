/** Class names that hold, joined. */
export function names(...given: (string | false | null | undefined)[]): string {
  return given.filter(Boolean).join(" ");
}
