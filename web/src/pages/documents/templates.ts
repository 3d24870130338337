/** What a new document starts with: small, valid, and able to run as it is. */
export type TemplateKind = "playbook" | "job" | "joblet";

export const KINDS: readonly { kind: TemplateKind; label: string; about: string }[] = [
  { kind: "playbook", label: "Playbook", about: "Steps that call tools, with arcs, loops and conditions between them" },
  { kind: "job", label: "Job", about: "Components that read, change and write rows, joined by links" },
  { kind: "joblet", label: "Joblet", about: "A part of a job that several jobs can call" },
];

/** The name of a document, from its file. */
export function nameOf(path: string): string {
  return (path.split("/").at(-1) ?? "").replace(/\.ya?ml$/i, "") || "document";
}

/** What is wrong with a path for a new file; null when nothing is. */
export function pathProblem(path: string, taken: readonly string[]): string | null {
  if (path.trim() === "") return "it needs a name";
  if (path.startsWith("/") || path.split("/").some((part) => part === ".." || part === "." || part === "")) {
    return "a path within the project folder is needed, such as `jobs/orders.yaml`";
  }
  if (!/\.ya?ml$/i.test(path)) return "the name must end in `.yaml`";
  if (taken.includes(path)) return `\`${path}\` already exists`;
  return null;
}

export function template(kind: TemplateKind, name: string): string {
  return { playbook, job, joblet }[kind](name);
}

const playbook = (name: string) => `apiVersion: noetl.io/v2
kind: Playbook
metadata:
  name: ${name}

# Defaults of the input; a run can be given others.
workload:
  who: world
  numbers: [3, 1, 2]

workflow:
  # The run begins with the step named \`start\`. A step runs its tasks one after another.
  - step: start
    tool:
      - name: greet
        kind: python
        args:
          who: "{{ workload.who }}"
        code: |
          print("about to greet", who)
          result = {"text": f"Hello, {who}!"}
    next:
      arcs:
        - step: squares

  # A loop runs its tasks once for each element, here two at a time.
  - step: squares
    loop:
      in: "{{ workload.numbers }}"
      iterator: number
      spec:
        mode: parallel
        max_in_flight: 2
    tool:
      - name: square
        kind: python
        args:
          number: "{{ iter.number }}"
        code: |
          result = number * number
`;

const job = (name: string) => `apiVersion: penstock/v1
kind: Job
metadata:
  name: ${name}

# Variables that stay as they are during a run; a run can be given others.
context:
  least: 10

components:
  - name: orders
    type: fixed_rows
    params:
      columns: [customer, amount]
      rows:
        - [anna, 12]
        - [ben, 7]
        - [anna, 31]

  # Rows for which the condition is not true go to the port \`reject\`.
  - name: large
    type: filter
    params:
      where: "amount >= {{ context.least }}"

  - name: totals
    type: aggregate
    params:
      by: [customer]
      measures:
        total: sum(amount)

  - name: show
    type: log_rows

connections:
  data: |
    orders.main -> large.input
    large.main -> totals.input
    totals.main -> show.input
`;

const joblet = (name: string) => `apiVersion: penstock/v1
kind: Joblet
metadata:
  name: ${name}

# What the caller may set, with its defaults: \`params: {least: 20}\` beside \`type: "@${name}"\`.
params:
  least: 10

# The ports that the caller sees, and where they lead to in here.
inputs:
  rows: keep.input
outputs:
  kept: keep.main
  left: keep.reject

components:
  - name: keep
    type: filter
    params:
      where: "amount >= {{ params.least }}"
`;
