import { useEffect, useState } from "react";
import { IconButton } from "./Button";
import { toast } from "./Toast";

/** Puts a text into the clipboard. */
export function CopyButton({
  text,
  label = "Copy",
  size = "small",
}: {
  text: string | (() => string);
  label?: string;
  size?: "small" | "normal";
}) {
  const [isDone, setDone] = useState(false);
  useEffect(() => {
    if (!isDone) return;
    const timer = window.setTimeout(() => setDone(false), 1500);
    return () => window.clearTimeout(timer);
  }, [isDone]);
  return (
    <IconButton
      icon={isDone ? "check" : "copy"}
      label={isDone ? "Copied" : label}
      size={size}
      onClick={() => void copied(typeof text === "string" ? text : text()).then(setDone)}
    />
  );
}

async function copied(text: string): Promise<boolean> {
  try {
    await navigator.clipboard.writeText(text);
    return true;
  } catch {
    // Without HTTPS a browser has no clipboard to offer, except in the old way.
    const area = document.createElement("textarea");
    area.value = text;
    area.style.position = "fixed";
    area.style.opacity = "0";
    document.body.append(area);
    area.select();
    const isCopied = document.execCommand("copy");
    area.remove();
    if (!isCopied) toast("failed", "the browser does not let this page copy");
    return isCopied;
  }
}
