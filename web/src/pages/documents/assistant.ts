/** What the editor's completion knows: schema and reference from the server, each asked for once. */
import { type QueryClient, useQueryClient } from "@tanstack/react-query";
import { useMemo } from "react";
import type { Assistant } from "@/editor/assistance";
import type { Ports } from "@/editor/suggest";
import { filesQuery, referencePageQuery, referenceQuery, schemaQuery } from "./queries";

export function useAssistant(isLocal: boolean): Assistant {
  const queries = useQueryClient();
  return useMemo(() => assistantOf(queries, isLocal), [queries, isLocal]);
}

export function assistantOf(queries: QueryClient, isLocal: boolean): Assistant {
  const ports = new Map<string, Ports>();

  /** What cannot be had is done without: completion is a help and not a condition. */
  async function orNull<T>(asking: Promise<T>): Promise<T | null> {
    return asking.catch(() => null);
  }

  async function load(type: string): Promise<void> {
    if (type === "" || type.startsWith("@") || ports.has(type)) return;
    const page = await orNull(queries.ensureQueryData(referencePageQuery("component", type)));
    if (page === null) return;
    ports.set(type, { inputs: page.inputs.map((one) => one.name), outputs: page.outputs.map((one) => one.name) });
  }

  return {
    async known(kind, types) {
      const [schema, reference, files] = await Promise.all([
        orNull(queries.ensureQueryData(schemaQuery(kind))),
        orNull(queries.ensureQueryData(referenceQuery)),
        isLocal && kind !== "playbook" ? orNull(queries.ensureQueryData(filesQuery)) : null,
        kind === "playbook" ? null : Promise.all(types.map(load)),
      ]);
      const wanted = kind === "playbook" ? "tool" : "component";
      return {
        schema,
        summaries: new Map(
          reference?.entries.filter((one) => one.kind === wanted).map((one) => [one.name, one.summary]),
        ),
        joblets: files?.files.filter((one) => one.kind.toLowerCase() === "joblet").map((one) => one.name) ?? [],
        ports: (type) => ports.get(type),
      };
    },
  };
}
