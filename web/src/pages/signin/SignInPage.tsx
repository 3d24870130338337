import { useQuery } from "@tanstack/react-query";
import { getRouteApi, Navigate, useRouter } from "@tanstack/react-router";
import { type FormEvent, useState } from "react";
import { ApiError } from "@/api/client";
import { sessionQuery, useSignIn } from "@/api/session";
import { Mark } from "@/shell/Mark";
import { Button, Field, Input, sentence } from "@/ui";
import "./signin.css";

const route = getRouteApi("/sign-in");

export function SignInPage() {
  const { to = "/runs" } = route.useSearch();
  const router = useRouter();
  const signIn = useSignIn();
  const session = useQuery(sessionQuery);
  const [token, setToken] = useState("");
  const [error, setError] = useState<string | null>(null);
  const [isBusy, setBusy] = useState(false);

  // There is nothing to sign in to, or somebody is signed in already.
  if (session.data && !isBusy) return <Navigate to={to} replace />;

  async function onSubmit(event: FormEvent) {
    event.preventDefault();
    if (token.trim() === "") {
      setError("A token is needed");
      return;
    }
    setBusy(true);
    setError(null);
    try {
      await signIn(token.trim());
      setToken("");
      await router.navigate({ href: to, replace: true });
    } catch (reason) {
      const isUnknown = reason instanceof ApiError && reason.status === 401;
      setError(isUnknown ? "This token is unknown here, or has expired" : sentence((reason as Error).message));
    } finally {
      setBusy(false);
    }
  }

  return (
    <main className="signin">
      <form className="signin-box panel" onSubmit={(event) => void onSubmit(event)}>
        <div className="signin-head">
          <Mark size={32} />
          <h1>Sign in to Penstock</h1>
        </div>
        <Field
          label="Token"
          error={error}
          hint={
            <>
              <code className="ui-literal">penstock token add NAME --scope run</code> creates one on the server.
            </>
          }
        >
          {(control) => (
            <Input
              {...control}
              type="password"
              autoFocus
              autoComplete="current-password"
              spellCheck={false}
              value={token}
              onChange={(event) => setToken(event.target.value)}
            />
          )}
        </Field>
        <Button type="submit" look="primary" isBusy={isBusy} className="signin-button">
          Sign in
        </Button>
        <p className="quiet signin-note">
          The token is exchanged for a cookie that no script can read. The page does not keep it.
        </p>
      </form>
    </main>
  );
}
