import { useQuery } from "@tanstack/react-query";
import { getRouteApi } from "@tanstack/react-router";
import { type Tab, Tabs } from "@/ui";
import { Alerts } from "./Alerts";
import { Hooks } from "./Hooks";
import { alertsQuery, hooksQuery, schedulesQuery } from "./queries";
import { Schedules } from "./Schedules";
import "./schedules.css";

const route = getRouteApi("/shell/schedules");

export function SchedulesPage() {
  const { view = "schedules", name } = route.useSearch();
  const navigate = route.useNavigate();
  const schedules = useQuery(schedulesQuery);
  const hooks = useQuery(hooksQuery);
  const alerts = useQuery(alertsQuery);
  const tabs: Tab[] = [
    { id: "schedules", label: "Schedules", icon: "schedules", count: schedules.data?.schedules.length },
    { id: "hooks", label: "Hooks", icon: "link", count: hooks.data?.hooks.length },
    { id: "alerts", label: "Alerts", icon: "bell", count: alerts.data?.alerts.length },
  ];
  const chosen = tabs.some((tab) => tab.id === view) ? view : "schedules";
  const choose = (to: string | undefined) =>
    void navigate({ search: (before) => ({ ...before, name: to }), replace: name !== undefined });
  return (
    <div className="schedules">
      <h1 className="visually-hidden">Schedules, hooks and alerts</h1>
      <Tabs
        label="What starts runs, and what tells of them"
        tabs={tabs}
        chosen={chosen}
        onChoose={(id) => void navigate({ search: { view: id === "schedules" ? undefined : id } })}
        isTall
      >
        {chosen === "schedules" && <Schedules name={name} onChoose={choose} />}
        {chosen === "hooks" && <Hooks />}
        {chosen === "alerts" && <Alerts name={name} onChoose={choose} />}
      </Tabs>
    </div>
  );
}
