/** Calling a hook from this page, as a sender would. */
import { ApiError, Unreachable } from "@/api/errors";

export function addressOf(name: string): string {
  return `${window.location.origin}/hooks/${encodeURIComponent(name)}`;
}

/** `sha256=…`, as `X-Hub-Signature-256` has it. */
export async function signatureOf(secret: string, text: string): Promise<string> {
  const bytes = new TextEncoder();
  const key = await crypto.subtle.importKey("raw", bytes.encode(secret), { name: "HMAC", hash: "SHA-256" }, false, [
    "sign",
  ]);
  const mac = await crypto.subtle.sign("HMAC", key, bytes.encode(text));
  return `sha256=${[...new Uint8Array(mac)].map((byte) => byte.toString(16).padStart(2, "0")).join("")}`;
}

export async function fireHook(name: string, text: string, secret: string | null): Promise<string> {
  const headers: Record<string, string> = { "content-type": "application/json" };
  if (secret !== null) headers["x-hub-signature-256"] = await signatureOf(secret, text);
  // Not through the client of the API: there a 401 means that this browser is signed out, here that the signature is wrong.
  const answer = await fetch(`/hooks/${encodeURIComponent(name)}`, { method: "POST", headers, body: text }).catch(
    () => {
      throw new Unreachable();
    },
  );
  const said: unknown = await answer.json().catch(() => null);
  if (!answer.ok) throw ApiError.of(answer.status, said);
  return (said as { execution_id: string }).execution_id;
}

/** A secret that nobody guesses, made by the browser. */
export function newSecret(): string {
  const bytes = crypto.getRandomValues(new Uint8Array(24));
  return btoa(String.fromCharCode(...bytes))
    .replaceAll("+", "-")
    .replaceAll("/", "_");
}
