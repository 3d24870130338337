/** What a JSON Schema says about one place of a document, given what the document has there already. */
import type { Path, Plain } from "./outline";

export interface Schema {
  $ref?: string;
  $defs?: Record<string, Schema>;
  title?: string;
  description?: string;
  type?: string | string[];
  properties?: Record<string, Schema>;
  required?: string[];
  additionalProperties?: boolean | Schema;
  items?: Schema | boolean;
  prefixItems?: Schema[];
  anyOf?: Schema[];
  oneOf?: Schema[];
  allOf?: Schema[];
  if?: Schema;
  then?: Schema;
  else?: Schema;
  not?: Schema;
  const?: Plain;
  enum?: Plain[];
  default?: Plain;
  pattern?: string;
  deprecated?: boolean;
  minProperties?: number;
}

export interface Property {
  readonly name: string;
  readonly description: string;
  readonly type: string;
  readonly isRequired: boolean;
  readonly isDeprecated: boolean;
  /** What its value begins with: a mapping, a list, or a scalar. */
  readonly shape: "map" | "list" | "scalar";
  readonly fallback: Plain | undefined;
}

export interface Value {
  readonly value: Plain;
  readonly description: string;
  readonly isDefault: boolean;
}

/** The schemas that hold at a path, with all references and conditions resolved. */
export function schemasAt(root: Schema, path: Path, document: Plain): Schema[] {
  let found = expanded(root, root, document);
  let value: Plain | undefined = document;
  for (const key of path) {
    value = inside(value, key);
    found = found.flatMap((schema) => next(schema, key)).flatMap((schema) => expanded(root, schema, value));
  }
  return found;
}

/** The keys that a mapping may have. */
export function propertiesOf(root: Schema, schemas: readonly Schema[]): Property[] {
  const names = new Map<string, { schemas: Schema[]; isRequired: boolean }>();
  for (const schema of schemas) {
    for (const [name, inner] of Object.entries(schema.properties ?? {})) {
      const known = names.get(name) ?? { schemas: [], isRequired: false };
      known.schemas.push(inner);
      known.isRequired ||= schema.required?.includes(name) ?? false;
      names.set(name, known);
    }
  }
  return [...names].map(([name, { schemas: own, isRequired }]) => {
    const all = own.flatMap((one) => expanded(root, one, undefined));
    return {
      name,
      description: described(own) || described(all),
      type: typeOf(root, own),
      isRequired,
      isDeprecated: all.some((one) => one.deprecated),
      shape: shapeOf(all),
      fallback: all.find((one) => one.default !== undefined)?.default,
    };
  });
}

/** The values that are known: of enumerations, constants and booleans. */
export function valuesOf(schemas: readonly Schema[]): Value[] {
  const found = new Map<string, Value>();
  const fallback = schemas.find((one) => one.default !== undefined && one.default !== null)?.default;
  const add = (value: Plain, description: string) => {
    const key = JSON.stringify(value);
    if (value === null || found.has(key)) return;
    found.set(key, { value, description, isDefault: key === JSON.stringify(fallback) });
  };
  for (const schema of schemas) {
    if (schema.const !== undefined) add(schema.const, schema.description ?? "");
    for (const value of schema.enum ?? []) add(value, "");
    if (typesOf(schema).includes("boolean")) {
      add(true, "");
      add(false, "");
    }
  }
  return [...found.values()];
}

/** What is said about a place: the description that the key itself carries comes first. */
export function descriptionAt(root: Schema, path: Path, document: Plain): { description: string; type: string } | null {
  const schemas = schemasAt(root, path, document);
  const description = described(schemas);
  return description === "" ? null : { description, type: typeOf(root, schemas) };
}

function described(schemas: readonly Schema[]): string {
  return schemas.find((one) => one.description !== undefined && one.description !== "")?.description ?? "";
}

/** A schema with all that it stands for: what it refers to, its alternatives that still fit, and what its conditions demand. */
export function expanded(root: Schema, schema: Schema, value: Plain | undefined, depth = 0): Schema[] {
  if (depth > 12) return [];
  const more = (inner: Schema) => expanded(root, inner, value, depth + 1);
  const found: Schema[] = [schema];
  if (schema.$ref !== undefined) {
    const target = referred(root, schema.$ref);
    if (target !== undefined) found.push(...more(target));
  }
  for (const inner of schema.allOf ?? []) found.push(...more(inner));
  const ways = [...(schema.anyOf ?? []), ...(schema.oneOf ?? [])];
  const fitting = ways.filter((way) => fits(root, way, value));
  for (const inner of fitting.length > 0 ? fitting : ways) found.push(...more(inner));
  if (schema.if !== undefined) {
    const then = holds(root, schema.if, value) ? schema.then : schema.else;
    if (then !== undefined) found.push(...more(then));
  }
  return found;
}

function referred(root: Schema, ref: string): Schema | undefined {
  const name = /^#\/\$defs\/(.+)$/.exec(ref)?.[1];
  return name === undefined
    ? undefined
    : root.$defs?.[decodeURIComponent(name.replaceAll("~1", "/").replaceAll("~0", "~"))];
}

function next(schema: Schema, key: string | number): Schema[] {
  if (typeof key === "number") {
    const fixed = schema.prefixItems?.[key];
    if (fixed !== undefined) return [fixed];
    return typeof schema.items === "object" ? [schema.items] : [];
  }
  const own = schema.properties?.[key];
  if (own !== undefined) return [own];
  return typeof schema.additionalProperties === "object" ? [schema.additionalProperties] : [];
}

function inside(value: Plain | undefined, key: string | number): Plain | undefined {
  if (typeof value !== "object" || value === null) return undefined;
  return Array.isArray(value) ? value[key as number] : value[String(key)];
}

/** Whether a value meets a condition, strictly: of what is not there yet nothing is assumed. */
function holds(root: Schema, condition: Schema, value: Plain | undefined): boolean {
  if (condition.$ref !== undefined) {
    const target = referred(root, condition.$ref);
    if (target !== undefined && !holds(root, target, value)) return false;
  }
  if (condition.const !== undefined && value !== condition.const) return false;
  if (condition.enum !== undefined && !condition.enum.includes(value as Plain)) return false;
  if (condition.required?.some((name) => inside(value, name) === undefined)) return false;
  if (condition.type !== undefined && value !== undefined && !typesOf(condition).some((type) => isOfType(value, type)))
    return false;
  for (const [name, inner] of Object.entries(condition.properties ?? {})) {
    const own = inside(value, name);
    if (own !== undefined && !holds(root, inner, own)) return false;
  }
  if (condition.anyOf !== undefined && !condition.anyOf.some((one) => holds(root, one, value))) return false;
  if (condition.allOf !== undefined && !condition.allOf.every((one) => holds(root, one, value))) return false;
  return condition.not === undefined || !holds(root, condition.not, value);
}

/** Whether a value can still become one of this schema: the kind of value is right, and no constant speaks against it. */
function fits(root: Schema, schema: Schema, value: Plain | undefined, depth = 0): boolean {
  if (value === undefined || value === null || depth > 6) return true;
  if (schema.$ref !== undefined) {
    const target = referred(root, schema.$ref);
    if (target !== undefined && !fits(root, target, value, depth + 1)) return false;
  }
  if (schema.type !== undefined && !typesOf(schema).some((type) => isOfType(value, type))) return false;
  for (const [name, inner] of Object.entries(schema.properties ?? {})) {
    const own = inside(value, name);
    if (own === undefined || own === null) continue;
    if (inner.const !== undefined && inner.const !== own) return false;
    if (inner.enum !== undefined && !inner.enum.includes(own)) return false;
  }
  return true;
}

function isOfType(value: Plain, type: string): boolean {
  if (type === "object") return typeof value === "object" && value !== null && !Array.isArray(value);
  if (type === "array") return Array.isArray(value);
  if (type === "null") return value === null;
  if (type === "integer") return Number.isInteger(value);
  if (type === "number") return typeof value === "number";
  // A word that is not finished may become any scalar.
  return type === "boolean" ? typeof value === "boolean" : typeof value !== "object";
}

function typesOf(schema: Schema): string[] {
  return schema.type === undefined ? [] : Array.isArray(schema.type) ? schema.type : [schema.type];
}

function isTemplate(schema: Schema): boolean {
  return schema.pattern === "\\{\\{";
}

/** The type in a few words: `string`, `list of string`, `fail | skip`. */
export function typeOf(root: Schema, schemas: readonly Schema[]): string {
  const words = new Set<string>();
  for (const schema of schemas) for (const word of wordsOf(root, schema, 0)) words.add(word);
  words.delete("null");
  if (words.size > 1 && words.has("number")) words.delete("integer");
  return [...words].slice(0, 6).join(" | ") + (words.size > 6 ? " | …" : "");
}

function wordsOf(root: Schema, schema: Schema, depth: number): string[] {
  if (depth > 5 || isTemplate(schema)) return [];
  if (schema.enum !== undefined) return schema.enum.map(String);
  if (schema.const !== undefined) return [String(schema.const)];
  if (schema.$ref !== undefined) {
    const target = referred(root, schema.$ref);
    return target === undefined ? [] : wordsOf(root, target, depth + 1);
  }
  const ways = [...(schema.anyOf ?? []), ...(schema.oneOf ?? [])];
  if (ways.length > 0) return ways.flatMap((way) => wordsOf(root, way, depth + 1));
  return typesOf(schema).map((type) => {
    if (type === "object") return "mapping";
    if (type !== "array") return type;
    const inner = typeof schema.items === "object" ? wordsOf(root, schema.items, depth + 1).join(" or ") : "";
    return inner === "" ? "list" : `list of ${inner}`;
  });
}

function shapeOf(schemas: readonly Schema[]): Property["shape"] {
  const types = new Set(schemas.filter((one) => !isTemplate(one)).flatMap(typesOf));
  const isScalar = ["string", "number", "integer", "boolean"].some((type) => types.has(type));
  if (isScalar || schemas.some((one) => one.enum !== undefined || one.const !== undefined)) return "scalar";
  if (types.has("object") && !types.has("array")) return "map";
  return types.has("array") && !types.has("object") ? "list" : types.has("object") ? "map" : "scalar";
}
