import { useQuery, useQueryClient } from "@tanstack/react-query";
import { useState } from "react";
import { useSession } from "@/api/session";
import {
  Badge,
  Button,
  EmptyState,
  ErrorState,
  Facts,
  Loading,
  Num,
  names,
  Prose,
  StatusBadge,
  sentence,
  Table,
  Td,
  Th,
  Time,
  toast,
  toastError,
} from "@/ui";
import { type Alert, alertsQuery, type Delivery, deliveriesQuery, testAlert } from "./queries";

interface Props {
  name: string | undefined;
  onChoose: (name: string | undefined) => void;
}

export function Alerts({ name, onChoose }: Props) {
  const { data, error, refetch } = useQuery(alertsQuery);
  if (data === undefined) {
    return error === null ? (
      <Loading rows={6} />
    ) : (
      <ErrorState error={error} title="The alerts cannot be listed" onRetry={() => void refetch()} />
    );
  }
  if (data.alerts.length === 0) {
    return (
      <EmptyState icon="bell" title="There are no alerts">
        <p>An alert sends a mail or calls a webhook when a run fails, is late or was missed.</p>
        <p>
          <code>penstock alert add NAME --on failed --mail-to you@example.com</code>
        </p>
      </EmptyState>
    );
  }
  const chosen = data.alerts.find((one) => one.name === name);
  return (
    <div className={names("schedules-panes", chosen !== undefined && "has-details")}>
      <div className="schedules-list">
        <Table caption="Alerts">
          <thead>
            <tr>
              <Th>Alert</Th>
              <Th>On</Th>
              <Th>Notifies</Th>
              <Th isNumeric>Delivered</Th>
              <Th isNumeric>Pending</Th>
              <Th isNumeric>Given up</Th>
            </tr>
          </thead>
          <tbody>
            {data.alerts.map((one) => (
              <tr key={one.name} className={names(one.name === name && "is-chosen", !one.is_on && "is-off")}>
                <Td>
                  <button
                    type="button"
                    className="schedules-name"
                    aria-pressed={one.name === name}
                    onClick={() => onChoose(one.name)}
                  >
                    {one.name}
                  </button>
                  {!one.is_on && <Badge icon="pause">paused</Badge>}
                </Td>
                <Td>
                  <span className="schedules-fate">
                    {one.on.map((event) => (
                      <Badge key={event} tone={TONES[event] ?? "neutral"}>
                        {event}
                      </Badge>
                    ))}
                  </span>
                </Td>
                <Td>{receiver(one)}</Td>
                <Td isNumeric>
                  <Num value={one.delivered} />
                </Td>
                <Td isNumeric>
                  <Num value={one.pending} />
                </Td>
                <Td isNumeric>{one.failed > 0 ? <Badge tone="failed">{one.failed}</Badge> : <Num value={0} />}</Td>
              </tr>
            ))}
          </tbody>
        </Table>
      </div>
      {chosen !== undefined && <Details key={chosen.name} alert={chosen} onClose={() => onChoose(undefined)} />}
    </div>
  );
}

const TONES: Record<string, "failed" | "retrying" | "interrupted"> = {
  failed: "failed",
  late: "retrying",
  missed: "interrupted",
};

function receiver(alert: Alert): string {
  return alert.mail_to ?? alert.url ?? "nobody";
}

function Details({ alert, onClose }: { alert: Alert; onClose: () => void }) {
  const { can } = useSession();
  const queries = useQueryClient();
  const [isBusy, setBusy] = useState(false);
  const { data, error } = useQuery(deliveriesQuery(alert.name));

  async function test() {
    setBusy(true);
    try {
      await testAlert(alert.name);
      toast("done", `a test was sent to ${receiver(alert)}`);
    } catch (error) {
      toastError(error);
    }
    setBusy(false);
    await queries.invalidateQueries({ queryKey: ["alerts"] });
  }

  return (
    <section className="schedules-details" aria-label={`The alert ${alert.name}`}>
      <header>
        <h2>{alert.name}</h2>
        <Button size="small" look="quiet" icon="close" onClick={onClose} aria-label="Close the details" />
      </header>
      {can("admin") && (
        <div className="schedules-actions">
          <Button size="small" icon="bell" isBusy={isBusy} onClick={() => void test()}>
            Send a test
          </Button>
        </div>
      )}
      {alert.last_error && (
        <p className="schedules-error" role="status">
          <Prose text={sentence(alert.last_error)} />
        </p>
      )}
      <Facts
        facts={[
          ["Sent on", alert.on.join(", ")],
          ["To", receiver(alert)],
          alert.mail_from !== null && ["From", alert.mail_from],
          alert.smtp_host !== null && [
            "Mail server",
            `${alert.smtp_host}${alert.smtp_port === null ? "" : `:${alert.smtp_port}`}, ${alert.smtp_security}`,
          ],
          alert.auth !== null && ["Keychain entry", alert.auth],
          alert.schedule !== null && ["Only of the schedule", alert.schedule],
          alert.document !== null && ["Only of the document", alert.document],
          alert.label !== null && ["Only of runs labelled", alert.label],
          ["Created", <Time key="made" value={alert.created_at} />],
        ]}
      />
      <h3>Deliveries</h3>
      {data === undefined ? (
        error === null ? (
          <Loading rows={3} />
        ) : (
          <ErrorState error={error} />
        )
      ) : data.deliveries.length === 0 ? (
        <p className="quiet">Nothing has been sent yet.</p>
      ) : (
        <Table caption="Deliveries">
          <thead>
            <tr>
              <Th>When</Th>
              <Th>What</Th>
              <Th>State</Th>
              <Th isNumeric>Attempts</Th>
            </tr>
          </thead>
          <tbody>
            {data.deliveries.map((one) => (
              <tr key={`${one.about} ${one.at}`}>
                <Td>
                  <Time value={one.at} />
                </Td>
                <Td>
                  <Prose text={told(one)} />
                  {one.error !== null && (
                    <div className="quiet schedules-said" title={one.error}>
                      <Prose text={one.error} />
                    </div>
                  )}
                </Td>
                <Td>
                  <StatusBadge state={one.state === "delivered" ? "ok" : one.state}>{sentence(one.state)}</StatusBadge>
                </Td>
                <Td isNumeric>{one.attempts}</Td>
              </tr>
            ))}
          </tbody>
        </Table>
      )}
    </section>
  );
}

function told(delivery: Delivery): string {
  const { text } = delivery.event;
  return typeof text === "string" ? text : delivery.about;
}
