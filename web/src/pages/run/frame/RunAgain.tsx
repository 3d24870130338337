/** The same document once more, with other inputs: the form of the document, filled in with what this run was given. */
import { useQuery } from "@tanstack/react-query";
import { answered, api } from "@/api/client";
import { Button, Dialog, ErrorState, Loading, Prose } from "@/ui";
import { RunForm } from "../../documents/RunForm";
import "../../documents/documents.css";

export default function RunAgain({ run, onClose }: { run: string; onClose: () => void }) {
  const { data, error, refetch } = useQuery({
    queryKey: ["run", run, "again"],
    queryFn: async ({ signal }) => {
      const pinned = await answered(api.GET("/api/executions/{run}/document", { params: { path: { run } }, signal }));
      const document = { text: pinned.text, file: pinned.file, sources: pinned.sources ?? {} };
      const examined = await answered(api.POST("/api/examine", { body: { document }, signal }));
      return { document, inputs: pinned.inputs ?? {}, examined };
    },
    staleTime: Number.POSITIVE_INFINITY,
  });
  if (data !== undefined && data.examined.form !== null) {
    const payload = data.inputs.payload;
    const given = typeof payload === "object" && payload !== null ? (payload as Record<string, unknown>) : {};
    return (
      <RunForm
        form={data.examined.form}
        graph={data.examined.graph}
        document={() => Promise.resolve(data.document)}
        verb="Run again"
        given={given}
        onClose={onClose}
      />
    );
  }
  return (
    <Dialog isOpen onClose={onClose} title="Run again" actions={<Button onClick={onClose}>Close</Button>}>
      {error !== null ? (
        <ErrorState error={error} onRetry={() => void refetch()} />
      ) : data === undefined ? (
        <Loading rows={4} label="Reading the document" />
      ) : (
        <ul className="run-dialog">
          {data.examined.problems.map((problem) => (
            <li key={`${problem.file}:${problem.line}:${problem.message}`}>
              <Prose text={problem.message} />
            </li>
          ))}
        </ul>
      )}
    </Dialog>
  );
}
