/** A name that no other tab has. Not `crypto.randomUUID`, which only pages from https or localhost have. */
export function newName(): string {
  return `${Date.now().toString(36)}-${Math.random().toString(36).slice(2)}`;
}
