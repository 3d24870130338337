/** The files that a document takes in: a catalog keeps them with it. */
import { isSameFile } from "./follow";
import { type FileEntry, type Graph, readFile } from "./queries";

/** The way from the folder of one file to another file. */
export function relative(from: string, to: string): string {
  const folder = from.split("/").slice(0, -1);
  const parts = to.split("/");
  let same = 0;
  while (same < folder.length && same < parts.length - 1 && folder[same] === parts[same]) same += 1;
  return [...folder.slice(same).map(() => ".."), ...parts.slice(same)].join("/");
}

/** The other files that nodes of a graph are written in, as far as they are files of the project. */
export function takenIn(graph: Graph | null, own: FileEntry, files: readonly FileEntry[]): FileEntry[] {
  const names = new Set(graph?.nodes.map((node) => node.file) ?? []);
  return files.filter((file) => file.path !== own.path && [...names].some((name) => isSameFile(name, file.file)));
}

export async function sourcesOf(
  graph: Graph | null,
  own: FileEntry,
  files: readonly FileEntry[],
): Promise<Record<string, string>> {
  const found = await Promise.all(takenIn(graph, own, files).map((file) => readFile(file.path)));
  return Object.fromEntries(found.map((file) => [relative(own.path, file.path), file.text]));
}
