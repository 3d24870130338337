/** A sentence of the server: what is in backticks is a literal. It is text, never markup. */
export function Prose({ text }: { text: string }) {
  return (
    <>
      {text.split(/(`[^`\n]+`)/).map((part, at) =>
        part.length > 2 && part.startsWith("`") && part.endsWith("`") ? (
          // biome-ignore lint/suspicious/noArrayIndexKey: the parts of a text keep their places.
          <code key={at} className="ui-literal">
            {part.slice(1, -1)}
          </code>
        ) : (
          part
        ),
      )}
    </>
  );
}
