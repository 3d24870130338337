import { useQueryClient } from "@tanstack/react-query";
import { Link, type LinkProps, Outlet, useNavigate, useRouterState } from "@tanstack/react-router";
import { Suspense, useEffect, useRef } from "react";
import { useConnection } from "@/api/connection";
import { sessionQuery, useSession, useSignOut } from "@/api/session";
import { startLive } from "@/live";
import { Icon, type IconName, KeyboardHelp, Loading, Menu, Toasts, Tooltip, toastError, useShortcuts } from "@/ui";
import { Breadcrumbs, titleOf, useCrumbs } from "./Breadcrumbs";
import { ConnectionState } from "./ConnectionState";
import { Mark } from "./Mark";
import { type Theme, useTheme } from "./theme";

interface Place {
  to: Exclude<LinkProps["to"], undefined>;
  label: string;
  icon: IconName;
  key: string;
}

const PLACES: readonly Place[] = [
  { to: "/runs", label: "Runs", icon: "runs", key: "r" },
  { to: "/documents", label: "Documents", icon: "documents", key: "d" },
  { to: "/compare", label: "Compare", icon: "compare", key: "c" },
  { to: "/reference", label: "Reference", icon: "reference", key: "e" },
  { to: "/schedules", label: "Schedules", icon: "schedules", key: "s" },
  { to: "/fleet", label: "Fleet", icon: "fleet", key: "f" },
];

export function Shell() {
  const navigate = useNavigate();
  useShortcuts(
    "Go to",
    PLACES.map((place) => ({
      keys: [`g ${place.key}`],
      label: place.label,
      run: () => void navigate({ to: place.to }),
    })),
  );
  useEffect(startLive, []);
  useWatchedSession();
  useFreshAfterLoss();
  const crumbs = useCrumbs();
  const title = titleOf(crumbs);
  useEffect(() => {
    document.title = title;
  }, [title]);

  return (
    <div className="shell">
      <a className="shell-skip" href="#main">
        Skip to the content
      </a>
      <Rail />
      <div className="shell-body">
        <header className="shell-bar">
          <Breadcrumbs crumbs={crumbs} />
          <div className="shell-bar-end" id="shell-actions" />
          <ConnectionState />
        </header>
        <main id="main" className="shell-main" tabIndex={-1}>
          <Suspense fallback={<Loading />}>
            <Outlet />
          </Suspense>
        </main>
      </div>
      <Toasts />
      <KeyboardHelp />
    </div>
  );
}

/** A stream that was refused means that the session has ended: then the page asks for a token instead of growing old. */
function useWatchedSession() {
  const { live } = useConnection();
  const queries = useQueryClient();
  const navigate = useNavigate();
  const href = useRouterState({ select: (state) => state.location.href });
  useEffect(() => {
    if (live !== "off") return;
    queries
      .fetchQuery({ ...sessionQuery, staleTime: 0 })
      .then((session) => {
        if (session === null) void navigate({ to: "/sign-in", search: { to: href } });
      })
      .catch(() => undefined); // Whether the server answers is shown already.
  }, [live, queries, navigate, href]);
}

/** What was missed while the server was away is asked for when it is back. */
function useFreshAfterLoss() {
  const { live, isReachable } = useConnection();
  const queries = useQueryClient();
  const wasLost = useRef(false);
  useEffect(() => {
    if (live === "lost" || !isReachable) wasLost.current = true;
    else if (live === "live" && wasLost.current) {
      wasLost.current = false;
      void queries.refetchQueries({ type: "active" });
    }
  }, [live, isReachable, queries]);
}

function Rail() {
  const path = useRouterState({ select: (state) => state.location.pathname });
  return (
    <nav className="shell-rail" aria-label="Main">
      <Link
        to="/runs"
        className="shell-home"
        aria-label="Penstock, to the runs"
        activeProps={{ "aria-current": undefined }}
      >
        <Mark />
        <span className="shell-word">Penstock</span>
      </Link>
      <ul>
        {PLACES.map((place) => (
          <li key={place.to}>
            <Link
              to={place.to}
              className="shell-place"
              aria-current={path === place.to || path.startsWith(`${place.to}/`) ? "page" : undefined}
              aria-label={place.label}
              title={place.label}
            >
              <Icon name={place.icon} />
              <span className="shell-word">{place.label}</span>
            </Link>
          </li>
        ))}
      </ul>
      <Foot />
    </nav>
  );
}

const THEMES: readonly { theme: Theme; label: string; icon: IconName }[] = [
  { theme: "system", label: "System", icon: "theme-system" },
  { theme: "light", label: "Light", icon: "theme-light" },
  { theme: "dark", label: "Dark", icon: "theme-dark" },
];

function Foot() {
  const { session } = useSession();
  const signOut = useSignOut();
  const navigate = useNavigate();
  const [theme, setTheme] = useTheme();
  const leave = () => {
    signOut()
      .then(() => navigate({ to: "/sign-in" }))
      .catch(toastError);
  };
  return (
    <div className="shell-foot">
      {session !== null && !session.is_open && (
        <div className="shell-user shell-word">
          <Tooltip text={`Signed in as ${session.name}, who may ${allowed[session.scope]}`}>
            <span className="ellipsis">{session.name}</span>
          </Tooltip>
          <span className="quiet">{session.scope}</span>
        </div>
      )}
      <div className="shell-foot-row">
        <Menu
          label="Theme"
          icon={`theme-${theme}`}
          items={THEMES.map((one) => ({
            label: one.label,
            icon: one.icon,
            isChecked: one.theme === theme,
            onSelect: () => setTheme(one.theme),
          }))}
        />
        {session !== null && !session.is_open && (
          <Menu
            label={`Account ${session.name}`}
            icon="user"
            items={[{ label: "Sign out", icon: "sign-out", onSelect: leave }]}
          />
        )}
        {session !== null && <span className="shell-version shell-word">{session.version}</span>}
      </div>
    </div>
  );
}

const allowed = { read: "look", run: "look at runs and start them", admin: "do everything" };
