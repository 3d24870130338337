import { gzipSync } from "node:zlib";
import type { Plugin, Rolldown } from "vite";

const PAGE = /\/src\/pages\/.+Page\.tsx$/;

/**
 * Fails the build when a page needs more than so many bytes, compressed, before it can be shown: scripts and styles of the entry, of
 * the page, and of all that they import at once. What is imported when it is needed (the editor, the layout of graphs) is not counted.
 */
export function budget(most: number): Plugin {
  return {
    name: "budget",
    apply: "build",
    generateBundle(_, bundle) {
      const sizes = new Map<string, number>();
      const size = (name: string) => {
        const file = bundle[name];
        if (file === undefined) return 0;
        const known = sizes.get(name) ?? gzipSync(file.type === "chunk" ? file.code : file.source).length;
        sizes.set(name, known);
        return known;
      };
      const chunks = Object.values(bundle).filter((file) => file.type === "chunk");
      const entry = chunks.find((chunk) => chunk.isEntry);
      if (entry === undefined) this.error("there is no entry");
      for (const page of chunks.filter((chunk) => PAGE.test(chunk.facadeModuleId ?? ""))) {
        const files = needed(bundle, [entry, page]);
        const total = [...files].reduce((sum, name) => sum + size(name), 0);
        if (total <= most) continue;
        const largest = [...files].sort((a, b) => size(b) - size(a)).slice(0, 5);
        const list = largest.map((name) => `  ${name} ${size(name).toLocaleString("en")}`).join("\n");
        this.error(
          `${page.name} needs ${total.toLocaleString("en")} bytes, and ${most.toLocaleString("en")} is the limit:\n${list}`,
        );
      }
    },
  };
}

function needed(bundle: Rolldown.OutputBundle, from: readonly Rolldown.OutputChunk[]): Set<string> {
  const found = new Set<string>();
  const left = [...from];
  for (let chunk = left.pop(); chunk !== undefined; chunk = left.pop()) {
    if (found.has(chunk.fileName)) continue;
    found.add(chunk.fileName);
    for (const css of chunk.viteMetadata?.importedCss ?? []) found.add(css);
    for (const name of chunk.imports) {
      const file = bundle[name];
      if (file?.type === "chunk") left.push(file);
    }
  }
  return found;
}
