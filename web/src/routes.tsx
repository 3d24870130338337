/**
 * Every page has its own address. A page is loaded when it is first shown; what its address may hold is in its `search.ts`.
 * Inside a page: `const route = getRouteApi("/runs/$run"); route.useParams(); route.useSearch(); route.useNavigate()`.
 */
import type { QueryClient } from "@tanstack/react-query";
import {
  createRootRouteWithContext,
  createRoute,
  createRouter,
  lazyRouteComponent,
  Outlet,
  redirect,
} from "@tanstack/react-router";
import { sessionQuery } from "./api/session";
import { chunk } from "./chunks";
import { compareSearch } from "./pages/compare/search";
import { catalogSearch, documentsSearch } from "./pages/documents/search";
import { fleetSearch } from "./pages/fleet/search";
import { Missing } from "./pages/missing/Missing";
import { referenceSearch } from "./pages/reference/search";
import { runSearch } from "./pages/run/search";
import { runsSearch } from "./pages/runs/search";
import { schedulesSearch } from "./pages/schedules/search";
import { signInSearch } from "./pages/signin/search";
import { parseSearch, stringifySearch } from "./search";
import { Shell } from "./shell/Shell";
import { ErrorState, Loading } from "./ui";

interface Context {
  queries: QueryClient;
}

const root = createRootRouteWithContext<Context>()({ component: Outlet });

const signIn = createRoute({
  getParentRoute: () => root,
  path: "/sign-in",
  validateSearch: signInSearch,
  component: lazyRouteComponent(
    chunk(() => import("./pages/signin/SignInPage")),
    "SignInPage",
  ),
});

/** Everything but the sign-in is in the shell, and for those who are signed in. */
const shell = createRoute({
  getParentRoute: () => root,
  id: "shell",
  component: Shell,
  notFoundComponent: Missing,
  beforeLoad: async ({ context, location }) => {
    // A server that does not answer is not a reason to ask for a token: the page itself says what is the matter.
    const session = await context.queries.ensureQueryData(sessionQuery).catch(() => undefined);
    if (session === null) throw redirect({ to: "/sign-in", search: { to: location.href } });
  },
});

const home = createRoute({
  getParentRoute: () => shell,
  path: "/",
  beforeLoad: () => {
    throw redirect({ to: "/runs", replace: true });
  },
});

const runs = createRoute({
  getParentRoute: () => shell,
  path: "/runs",
  validateSearch: runsSearch,
  component: lazyRouteComponent(
    chunk(() => import("./pages/runs/RunsPage")),
    "RunsPage",
  ),
});

const run = createRoute({
  getParentRoute: () => shell,
  path: "/runs/$run",
  validateSearch: runSearch,
  component: lazyRouteComponent(
    chunk(() => import("./pages/run/RunPage")),
    "RunPage",
  ),
});

const compare = createRoute({
  getParentRoute: () => shell,
  path: "/compare",
  validateSearch: compareSearch,
  component: lazyRouteComponent(
    chunk(() => import("./pages/compare/ComparePage")),
    "ComparePage",
  ),
});

const documents = createRoute({
  getParentRoute: () => shell,
  path: "/documents",
  validateSearch: documentsSearch,
  component: lazyRouteComponent(
    chunk(() => import("./pages/documents/DocumentsPage")),
    "DocumentsPage",
  ),
});

const file = createRoute({
  getParentRoute: () => shell,
  path: "/documents/file/$",
  validateSearch: documentsSearch,
  component: lazyRouteComponent(
    chunk(() => import("./pages/documents/FilePage")),
    "FilePage",
  ),
});

const catalog = createRoute({
  getParentRoute: () => shell,
  path: "/documents/catalog/$",
  validateSearch: catalogSearch,
  component: lazyRouteComponent(
    chunk(() => import("./pages/documents/CatalogPage")),
    "CatalogPage",
  ),
});

const reference = createRoute({
  getParentRoute: () => shell,
  path: "/reference",
  validateSearch: referenceSearch,
  component: lazyRouteComponent(
    chunk(() => import("./pages/reference/ReferencePage")),
    "ReferencePage",
  ),
});

const referenceEntry = createRoute({
  getParentRoute: () => shell,
  path: "/reference/$kind/$name",
  validateSearch: referenceSearch,
  component: lazyRouteComponent(
    chunk(() => import("./pages/reference/ReferenceEntryPage")),
    "ReferenceEntryPage",
  ),
});

const schedules = createRoute({
  getParentRoute: () => shell,
  path: "/schedules",
  validateSearch: schedulesSearch,
  component: lazyRouteComponent(
    chunk(() => import("./pages/schedules/SchedulesPage")),
    "SchedulesPage",
  ),
});

const fleet = createRoute({
  getParentRoute: () => shell,
  path: "/fleet",
  validateSearch: fleetSearch,
  component: lazyRouteComponent(
    chunk(() => import("./pages/fleet/FleetPage")),
    "FleetPage",
  ),
});

const missing = createRoute({ getParentRoute: () => shell, path: "$", component: Missing });

const tree = root.addChildren([
  signIn,
  shell.addChildren([
    home,
    runs,
    run,
    compare,
    documents,
    file,
    catalog,
    reference,
    referenceEntry,
    schedules,
    fleet,
    missing,
  ]),
]);

export function createPages(queries: QueryClient) {
  return createRouter({
    routeTree: tree,
    context: { queries },
    parseSearch,
    stringifySearch,
    defaultPreload: "intent",
    scrollRestoration: true,
    defaultPendingMs: 300,
    defaultPendingComponent: () => <Loading />,
    defaultErrorComponent: ({ error, reset }) => <ErrorState error={error} onRetry={reset} />,
    defaultNotFoundComponent: Missing,
  });
}

declare module "@tanstack/react-router" {
  interface Register {
    router: ReturnType<typeof createPages>;
  }
}
