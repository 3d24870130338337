import { existsSync, readdirSync, readFileSync } from "node:fs";
import { dirname, join } from "node:path";
import type { Plugin } from "vite";

const FILE = "THIRD-PARTY-LICENCES.txt";
const TEXT = /^(licen[cs]e|copying|notice)([.-].*)?$/i;
const RULE = "-".repeat(100);

interface Package {
  name: string;
  version: string;
  licence: string;
  texts: string[];
}

/**
 * Writes beside the page which packages are in it, with version and licence text. What is in it is what the bundler took in, so
 * that a package which is only needed to build the page is not listed, and none can be forgotten.
 */
export function licences(modules: string): Plugin {
  const folders = new Set<string>();
  return {
    name: "licences",
    apply: "build",
    // Not `generateBundle` alone: a file that is taken in as an asset (the worker of ELK) is in no chunk, but it passes here.
    load(id) {
      const folder = packageOf(id.replace(/^\0+/, "").replace(/[?#].*$/, ""), modules);
      if (folder !== undefined) folders.add(folder);
      return null;
    },
    generateBundle() {
      const found = [...folders].map(read).sort((a, b) => a.name.localeCompare(b.name));
      const silent = found.filter((one) => one.texts.length === 0);
      if (silent.length > 0) this.error(`no licence text in: ${silent.map((one) => one.name).join(", ")}`);
      const head = `The page of Penstock contains these packages, each under its own licence.\n`;
      const list = found.map((one) => `  ${one.name} ${one.version} (${one.licence})`).join("\n");
      const texts = found.map(
        (one) => `${RULE}\n${one.name} ${one.version}\nLicence: ${one.licence}\n\n${one.texts.join("\n\n")}\n`,
      );
      this.emitFile({ type: "asset", fileName: FILE, source: `${head}\n${list}\n\n${texts.join("\n")}` });
    },
  };
}

function packageOf(file: string, modules: string): string | undefined {
  if (!file.includes("/node_modules/")) return undefined;
  for (let folder = dirname(file); folder.length > modules.length; folder = dirname(folder)) {
    const path = join(folder, "package.json");
    if (existsSync(path) && (JSON.parse(readFileSync(path, "utf8")) as { name?: string }).name) return folder;
  }
  return undefined;
}

function read(folder: string): Package {
  const said = JSON.parse(readFileSync(join(folder, "package.json"), "utf8")) as Record<string, string>;
  const texts = readdirSync(folder)
    .filter((name) => TEXT.test(name))
    .sort()
    .map((name) => readFileSync(join(folder, name), "utf8").trim());
  return { name: said.name ?? folder, version: said.version ?? "", licence: said.license ?? "see below", texts };
}
