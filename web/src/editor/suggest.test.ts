import { describe, expect, it } from "vitest";
import { outline } from "./outline";
import { placeAt } from "./place";
import { descriptionAt, type Schema } from "./schema";
import { type Known, kindOf, suggest } from "./suggest";

const template: Schema = { type: "string", pattern: "\\{\\{" };

const schema: Schema = {
  type: "object",
  properties: {
    kind: { const: "Job", description: "What this document is." },
    metadata: { $ref: "#/$defs/metadata", description: "What it is called." },
    components: {
      anyOf: [
        { type: "array", items: { $ref: "#/$defs/component" } },
        { type: "object", additionalProperties: { $ref: "#/$defs/component" } },
      ],
    },
    connections: { type: "object", properties: { data: { type: "string" }, control: { type: "string" } } },
  },
  required: ["components"],
  $defs: {
    metadata: {
      type: "object",
      description: "A mapping.",
      properties: { name: { type: "string", description: "The name." } },
    },
    component: {
      type: "object",
      properties: {
        name: { type: "string" },
        type: {
          anyOf: [{ enum: ["filter", "read_csv"] }, { type: "string", pattern: "^@" }],
          description: "What it does.",
        },
        params: { type: "object", description: "Its parameters." },
        active: { type: "boolean", default: true },
      },
      required: ["name", "type"],
      allOf: [
        {
          if: { properties: { type: { const: "filter" } }, required: ["type"] },
          // biome-ignore lint/suspicious/noThenProperty: a keyword of JSON Schema.
          then: {
            properties: {
              params: {
                properties: { where: { anyOf: [{ type: "string" }, template], description: "A condition." } },
                required: ["where"],
              },
            },
          },
        },
        {
          if: { properties: { type: { const: "read_csv" } }, required: ["type"] },
          // biome-ignore lint/suspicious/noThenProperty: a keyword of JSON Schema.
          then: {
            properties: {
              params: {
                properties: {
                  path: { type: "string" },
                  on_error: { anyOf: [{ enum: ["fail", "skip"], default: "fail" }, template] },
                  columns: { type: "array", items: { type: "string" } },
                },
              },
            },
          },
        },
      ],
    },
  },
};

const known: Known = {
  schema,
  summaries: new Map([["filter", "Keep rows."]]),
  joblets: ["clean"],
  ports: (type) =>
    ({ filter: { inputs: ["input"], outputs: ["main", "reject"] }, read_csv: { inputs: [], outputs: ["main"] } })[type],
};

function at(text: string) {
  const place = placeAt(text.replace("¦", ""), text.indexOf("¦"));
  if (place === null) return [];
  const found = suggest(place, known);
  return found.options.map((one) => one.label);
}

const job = (connections: string) =>
  `components:\n  - name: orders\n    type: read_csv\n  - name: large\n    type: filter\nconnections:\n${connections}`;

describe("suggest", () => {
  it("offers the keys that are not there yet", () => {
    expect(at("kind: Job\n¦")).toEqual(["metadata", "components", "connections"]);
  });

  it("offers the keys of an entry of a list", () => {
    expect(at("components:\n  - ¦")).toEqual(["name", "type", "params", "active"]);
  });

  it("offers the parameters of the type that is chosen, also when it is written below", () => {
    expect(at("components:\n  - name: a\n    type: filter\n    params:\n      ¦")).toEqual(["where"]);
    expect(at("components:\n  - name: a\n    params: { ¦ }\n    type: read_csv\n")).toEqual([
      "path",
      "on_error",
      "columns",
    ]);
  });

  it("offers types with joblets, and says what they do", () => {
    const text = "components:\n  - name: a\n    type: ";
    const place = placeAt(text, text.length);
    expect(at(`${text}¦`)).toEqual(["filter", "read_csv", "@clean"]);
    expect(place && suggest(place, known).options[0]).toMatchObject({ info: "Keep rows.", kind: "type" });
    expect(place && suggest(place, known).options[2]).toMatchObject({ insert: '"@clean"' });
  });

  it("offers the values of enumerations and booleans, the default first by weight", () => {
    expect(at("components:\n  - name: a\n    type: read_csv\n    params: { on_error: ¦ }")).toEqual(["fail", "skip"]);
    expect(at("components:\n  - name: a\n    active: ¦")).toEqual(["true", "false"]);
  });

  it("writes what a key needs after it", () => {
    const text = "components:\n  - name: a\n    type: read_csv\n    params:\n      ";
    const place = placeAt(text, text.length);
    const inserts = place && suggest(place, known).options.map((one) => one.insert);
    expect(inserts).toEqual(["path: ¦", "on_error: ¦", "columns:\n  - ¦"]);
  });

  it("offers components and their ports in data links", () => {
    expect(at(job("  data: |\n    ¦"))).toEqual(["orders", "large"]);
    expect(at(job("  data: |\n    large.¦"))).toEqual(["main", "reject"]);
    expect(at(job("  data: |\n    orders.main -> large.¦"))).toEqual(["input"]);
    expect(at(job("  data: |\n    orders.main ¦"))).toEqual(["->"]);
    expect(at(job("  data:\n    - orders.main -> lar¦"))).toEqual(["orders", "large"]);
    expect(at(job("  data:\n    - from: orders.¦"))).toEqual(["main"]);
  });

  it("offers components and conditions in control links", () => {
    expect(at(job("  control: |\n    ¦"))).toEqual(["orders", "large"]);
    expect(at(job("  control: |\n    orders ¦"))[0]).toBe("(ok)");
    expect(at(job("  control: |\n    orders (¦"))[0]).toBe("ok");
    expect(at(job("  control: |\n    orders (ok) ¦"))).toEqual(["orders", "large"]);
  });

  it("offers the steps of a playbook to its arcs, and tasks to jumps", () => {
    const steps = "workflow:\n  - step: a\n    next:\n      arcs:\n        - step: ¦\n  - step: b\n";
    expect(at(steps)).toEqual(["a", "b"]);
    const jump =
      "workflow:\n  - step: a\n    tool:\n      - name: fetch\n        spec: { policy: { rules: [ { then: { do: jump, to: ¦ } } ] } }\n      - name: rest\n";
    expect(at(jump)).toEqual(["fetch", "rest"]);
  });

  it("offers variables inside of templates", () => {
    const text =
      'workload:\n  url: http://x\n  n: 3\nworkflow:\n  - step: a\n    tool: { kind: http, url: "{{ workload.¦';
    expect(at(text)).toEqual(["url", "n"]);
    expect(at('workflow:\n  - step: a\n    desc: "{{ ¦"')).toContain("workload");
    expect(at('workflow:\n  - step: fetch\n    desc: "{{ fe¦"')).toContain("fetch");
  });
});

describe("descriptionAt", () => {
  it("prefers what is said at the key", () => {
    const document = { components: [{ name: "a", type: "filter", params: { where: "x" } }] };
    expect(descriptionAt(schema, ["metadata"], document)?.description).toBe("What it is called.");
    expect(descriptionAt(schema, ["components", 0, "params", "where"], document)).toEqual({
      description: "A condition.",
      type: "string",
    });
    expect(descriptionAt(schema, ["nothing"], document)).toBeNull();
  });
});

describe("kindOf", () => {
  it("goes by the kind, or by what the document has", () => {
    expect(kindOf(outline("kind: Joblet\n"))).toBe("joblet");
    expect(kindOf(outline("components: []\n"))).toBe("job");
    expect(kindOf(outline("inputs: {}\ncomponents: []\n"))).toBe("joblet");
    expect(kindOf(outline("workflow: []\n"))).toBe("playbook");
  });
});
