/** A short YAML text with colours, without the weight of an editor. */
export function YamlText({ text, label }: { text: string; label: string }) {
  return (
    // biome-ignore lint/a11y/noNoninteractiveTabindex: a region that scrolls must be reachable by keyboard.
    <section className="yaml-text" aria-label={label} tabIndex={0}>
      <pre>
        {text
          .replace(/\n$/, "")
          .split("\n")
          .map((line, at) => (
            // biome-ignore lint/suspicious/noArrayIndexKey: the lines of a text keep their places.
            <Line key={at} line={line} />
          ))}
      </pre>
    </section>
  );
}

function Line({ line }: { line: string }) {
  const [, lead = "", key = "", rest = line] = /^(\s*(?:- )*)([\w.@-]+(?=:(?:\s|$)))?(.*)$/.exec(line) ?? [];
  const isComment = key === "" && rest.startsWith("#");
  return (
    <>
      {lead}
      {key !== "" && <span className="yaml-key">{key}</span>}
      {isComment ? <span className="yaml-comment">{rest}</span> : rest}
      {"\n"}
    </>
  );
}
