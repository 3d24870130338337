/** From the scopes in a log to the nodes of a graph: `fetch@2[5]` is of step `fetch`, `it[#3].x` of component `x`. */

/** The component of a job that a scope is a run of. */
export function componentOf(scope: string): string {
  const end = scope.lastIndexOf("].");
  if (end < 0) return scope;
  const rest = scope.slice(end + 2);
  if (!rest.startsWith("__")) return rest;
  return `${componentOf(scope.slice(0, scope.lastIndexOf("[#", end)))}.${rest}`;
}

/** The innermost execution that a scope lies in; empty for the run itself. */
export function executionOf(scope: string, executions: readonly { scope: string }[]): string {
  let found = "";
  for (const one of executions) {
    if (one.scope.length > found.length && scope.startsWith(one.scope)) found = one.scope;
  }
  return found;
}

export interface Place {
  execution: string;
  node: string | null;
  /** The run of the node, by its scope. */
  part: string | null;
}

/** Where a scope is: the execution, the node of its graph, and which run of it. */
export function placeIn(scope: string, executions: readonly { scope: string }[]): Place {
  const execution = executionOf(scope, executions);
  const own = scope.slice(execution.length);
  const at = own.indexOf("@");
  if (at > 0) {
    const run = own.split("/")[0] ?? own;
    return { execution, node: own.slice(0, at), part: execution + run };
  }
  const rest = own.split("/")[0] ?? "";
  if (rest === "") return { execution, node: null, part: null };
  const subjob = /<([^<>]*)>$/.exec(rest);
  if (subjob !== null) return { execution, node: subjob[1] === "" ? null : (subjob[1] ?? null), part: null };
  const iteration = /^(.*)\[#\d+\]$/.exec(rest);
  const component = iteration === null ? rest : (iteration[1] ?? rest);
  return { execution, node: componentOf(component), part: execution + rest };
}

/** `fetch@2` or `fetch@2[5]` without its index; and the index. */
export function partsOf(part: string): { run: string; index: number | null } {
  const found = /^(.*)\[#?(\d+)\]$/.exec(part);
  return found === null ? { run: part, index: null } : { run: found[1] ?? part, index: Number(found[2]) };
}

/** The scope of one element of a run: steps number theirs `[5]`, iterators of jobs `[#5]`. */
export function elementOf(run: string, index: number, isJob: boolean): string {
  return isJob ? `${run}[#${index}]` : `${run}[${index}]`;
}
