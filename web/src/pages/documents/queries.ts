/** What the pages of documents ask for. */
import { queryOptions } from "@tanstack/react-query";
import { body, json } from "@/api/client";
import type { components } from "@/api/schema";
import type { Schema } from "@/editor/schema";

export type Schemas = components["schemas"];
export type FileEntry = Schemas["FileOut"];
export type FileText = Schemas["FileTextOut"];
export type Filed = Schemas["FiledOut"];
export type Examined = Schemas["ExaminedOut"];
export type DocumentProblem = Schemas["ProblemOut"];
export type Form = Schemas["FormOut"];
export type Graph = Schemas["GraphOut"];
export type Lineage = Schemas["LineageOut"];
export type ReferenceEntry = Schemas["ReferenceOut"];
export type ReferencePage = Schemas["ReferencePageOut"];
export type RunEntry = Schemas["RunOut"];

/** A document by its text, or by its path in the catalog. */
export type Asked =
  | { text: string; file: string; sources?: Record<string, string> }
  | { path: string; version?: number };

/** A path as a part of an address: its slashes stay. */
export function segments(path: string): string {
  return path.split("/").map(encodeURIComponent).join("/");
}

export const filesQuery = queryOptions({
  queryKey: ["files"],
  queryFn: ({ signal }) => json<Schemas["FileList"]>("/api/files", { signal }),
  staleTime: 2_000,
});

export const fileQuery = (path: string) =>
  queryOptions({
    queryKey: ["file", path],
    queryFn: ({ signal }) => json<FileText>(`/api/files/${segments(path)}`, { signal }),
    // What was read is what the digest stands for: it is read again when somebody asks for it, not behind the editor's back.
    staleTime: Number.POSITIVE_INFINITY,
    gcTime: 0,
  });

export function readFile(path: string): Promise<FileText> {
  return json<FileText>(`/api/files/${segments(path)}`);
}

export function saveFile(path: string, text: string, digest: string | null): Promise<FileText> {
  return json<FileText>(`/api/files/${segments(path)}`, body({ text, digest }, "PUT"));
}

export const catalogQuery = queryOptions({
  queryKey: ["documents"],
  queryFn: ({ signal }) => json<Schemas["FiledList"]>("/api/documents", { signal }),
  staleTime: 2_000,
});

export const filedQuery = (path: string, version: number | undefined) =>
  queryOptions({
    queryKey: ["document", path, version ?? "newest"],
    queryFn: ({ signal }) =>
      json<Filed>(`/api/documents/${segments(path)}${version === undefined ? "" : `?version=${version}`}`, { signal }),
  });

export const versionsQuery = (path: string) =>
  queryOptions({
    queryKey: ["versions", path],
    queryFn: ({ signal }) => json<Schemas["FiledList"]>(`/api/versions/${segments(path)}`, { signal }),
  });

export function putDocument(path: string, text: string, sources: Record<string, string> = {}): Promise<Filed> {
  return json<Filed>(`/api/documents/${segments(path)}`, body({ text, sources }, "PUT"));
}

export function deleteDocument(path: string): Promise<void> {
  return json<void>(`/api/documents/${segments(path)}`, { method: "DELETE" });
}

export function examine(document: Asked, signal?: AbortSignal): Promise<Examined> {
  return json<Examined>("/api/examine", { ...body({ document }), signal });
}

export function lineageOf(document: Asked, signal?: AbortSignal): Promise<Lineage> {
  return json<Lineage>("/api/lineage", { ...body({ document }), signal });
}

export const schemaQuery = (kind: "playbook" | "job" | "joblet") =>
  queryOptions({
    queryKey: ["schema", kind],
    queryFn: ({ signal }) => json<Schema>(`/api/schema/${kind}`, { signal }),
    staleTime: Number.POSITIVE_INFINITY,
  });

export const referenceQuery = queryOptions({
  queryKey: ["reference"],
  queryFn: ({ signal }) => json<Schemas["ReferenceList"]>("/api/reference", { signal }),
  staleTime: Number.POSITIVE_INFINITY,
});

export const referencePageQuery = (kind: string, name: string) =>
  queryOptions({
    queryKey: ["reference", kind, name],
    queryFn: ({ signal }) =>
      json<ReferencePage>(`/api/reference/${encodeURIComponent(kind)}/${encodeURIComponent(name)}`, { signal }),
    staleTime: Number.POSITIVE_INFINITY,
  });

/** The latest runs: what became of each document last. */
export const latestRunsQuery = queryOptions({
  queryKey: ["executions", "latest"],
  queryFn: ({ signal }) => json<Schemas["RunList"]>("/api/executions?limit=500", { signal }),
  staleTime: 2_000,
});

export interface Start {
  document: Asked;
  payload?: Record<string, unknown>;
  context?: string;
  label?: string;
  keep?: string[];
}

export function start(asked: Start): Promise<Schemas["SubmitOut"]> {
  return json<Schemas["SubmitOut"]>("/api/executions", body(asked));
}
