// Writes src/api/schema.ts, the types of the API, from the OpenAPI document of the server beside this folder.
// With `--check` it writes nothing, and fails when the file is out of date.
import { execFileSync } from "node:child_process";
import { existsSync, readFileSync, writeFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import openapi, { astToString } from "openapi-typescript";

const here = (path) => fileURLToPath(new URL(path, import.meta.url));
const file = here("../src/api/schema.ts");
const own = here("../../.venv/bin/python");
const python = process.env.PYTHON ?? (existsSync(own) ? own : "python3");
const asked = "from penstock.api.app import described; import json; print(json.dumps(described('0').openapi()))";

const document = JSON.parse(execFileSync(python, ["-c", asked], { encoding: "utf8", maxBuffer: 1 << 28 }));
const types = astToString(
  await openapi(document, { rootTypes: true, rootTypesNoSchemaPrefix: true, alphabetize: true }),
);
const text = `// Made by \`make web-client\` from the OpenAPI document. Do not edit.\n\n${types}`;
const is = existsSync(file) ? readFileSync(file, "utf8") : "";

if (!process.argv.includes("--check")) {
  if (text !== is) writeFileSync(file, text);
} else if (text !== is) {
  process.stderr.write(
    "web/src/api/schema.ts does not say what the API is now\nhint: run `make web-client` and commit the file\n",
  );
  process.exit(1);
}
