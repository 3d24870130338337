/** The documents of a project and of a catalog as rows of one list, with what became of their latest run. */
import type { Filed, FileEntry, RunEntry } from "./queries";

export interface Row {
  readonly id: string;
  readonly origin: "file" | "catalog";
  readonly path: string;
  readonly kind: string;
  readonly name: string;
  readonly version: number | null;
  /** When the text was last changed. */
  readonly changedAt: string | number;
  readonly run: RunEntry | undefined;
}

/** `catalog:/sales/orders@3` and `catalog:/shop@3/jobs/load.yaml` -> the path of the document or of its project. */
export function catalogPath(file: string): string | null {
  return /^catalog:\/([^@]+)@\d+/.exec(file)?.[1] ?? null;
}

export function rowsOf(files: readonly FileEntry[], filed: readonly Filed[], runs: readonly RunEntry[]): Row[] {
  const byFile = new Map<string, RunEntry>();
  const byPath = new Map<string, RunEntry>();
  // The newest come first, so the first one counts.
  for (const run of runs) {
    if (!byFile.has(run.file)) byFile.set(run.file, run);
    const path = catalogPath(run.file);
    if (path !== null && !byPath.has(path)) byPath.set(path, run);
  }
  return [
    ...files.map(
      (one): Row => ({
        id: `file:${one.path}`,
        origin: "file",
        path: one.path,
        kind: one.kind.toLowerCase(),
        name: one.name,
        version: null,
        changedAt: one.modified_at * 1000,
        run: byFile.get(one.file),
      }),
    ),
    ...filed.map(
      (one): Row => ({
        id: `catalog:${one.path}`,
        origin: "catalog",
        path: one.path,
        kind: one.kind.toLowerCase(),
        name: one.path.split("/").at(-1) ?? one.path,
        version: one.version,
        changedAt: one.created_at,
        run: byPath.get(one.path),
      }),
    ),
  ];
}

/** Every word must be somewhere in the row. */
export function matching(rows: readonly Row[], query: string, kind: string | undefined): Row[] {
  const words = query.toLowerCase().split(/\s+/).filter(Boolean);
  return rows.filter((row) => {
    if (kind !== undefined && row.kind !== kind) return false;
    const text = `${row.path} ${row.name} ${row.kind} ${row.run?.status ?? ""}`.toLowerCase();
    return words.every((word) => text.includes(word));
  });
}
