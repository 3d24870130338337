import { QueryClientProvider } from "@tanstack/react-query";
import { RouterProvider } from "@tanstack/react-router";
import { StrictMode } from "react";
import { createRoot } from "react-dom/client";
import "./styles/tokens.css";
import "./styles/base.css";
import "./ui/ui.css";
import "./shell/shell.css";
import { whenSignedOut } from "./api/client";
import { createQueries } from "./api/queries";
import { signInFromAddress } from "./api/session";
import { createPages } from "./routes";
import { applyTheme } from "./shell/theme";

applyTheme();

const queries = createQueries();
const router = createPages(queries);

whenSignedOut(() => {
  const { pathname, href } = router.state.location;
  if (pathname === "/sign-in") return;
  queries.setQueryData(["session"], null);
  void router.navigate({ to: "/sign-in", search: { to: href } });
});

const root = document.getElementById("root");
if (root === null) throw new Error("the page has no root");
const app = (
  <StrictMode>
    <QueryClientProvider client={queries}>
      <RouterProvider router={router} />
    </QueryClientProvider>
  </StrictMode>
);
// A wrong token is found out by the page itself, which asks for another one.
void signInFromAddress().finally(() => createRoot(root).render(app));
