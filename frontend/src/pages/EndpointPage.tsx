import { Anchor, Group, Stack, Tabs } from "@mantine/core";
import { useQuery } from "@tanstack/react-query";
import { lazy, type ReactNode, Suspense } from "react";
import { Link, useNavigate, useParams } from "react-router";

import { numberIn } from "../api/address";
import { pathIn, useZone } from "../api/zone";
import { Absent, isAbsent } from "../parts/Absent";
import { Loading } from "../parts/Loading";
import { Missing } from "../parts/Missing";
import { PageHeader } from "../parts/PageHeader";
import { ProblemAlert } from "../parts/ProblemAlert";
import { SendExample } from "../features/deliveries/SendExample";
import { About } from "../features/endpoints/About";
import { Authentication } from "../features/endpoints/Authentication";
import { Certificates } from "../features/endpoints/Certificates";
import { CircuitFigure } from "../features/endpoints/CircuitFigure";
import { EndpointActions } from "../features/endpoints/EndpointActions";
import { endpointPath, oneEndpoint } from "../features/endpoints/endpoints";
import { EndpointState } from "../features/endpoints/EndpointState";
import { Headers } from "../features/endpoints/Headers";
import { Health } from "../features/endpoints/Health";
import { Retries } from "../features/endpoints/Retries";
import { Secrets } from "../features/endpoints/Secrets";
import type { Found } from "../features/endpoints/Setting";
import { Signature } from "../features/endpoints/Signature";
import { isSink } from "../features/endpoints/sinks";
import { Verification } from "../features/endpoints/Verification";

// loaded with its charts on demand
const StatisticsTab = lazy(async () => ({ default: (await import("../features/endpoints/StatisticsTab")).StatisticsTab }));

const TABS = ["overview", "statistics", "secrets", "authentication", "retries"] as const;
type Tab = (typeof TABS)[number];
const LABELS: Record<Tab, string> = {
  overview: "Overview",
  statistics: "Statistics",
  secrets: "Secrets",
  authentication: "Headers and authentication",
  retries: "Retries and limits",
};

/** One endpoint; the tab is part of the path. */
export function EndpointPage() {
  const { endpoint = "", tab: requested = "overview" } = useParams();
  const id = numberIn(endpoint);
  const tab = TABS.find((one) => one === requested);
  if (id === undefined || tab === undefined) return <Missing />;
  return <OneEndpoint key={id} id={id} tab={tab} />;
}

function OneEndpoint({ id, tab }: { id: number; tab: Tab }) {
  const zone = useZone();
  const navigate = useNavigate();
  const { data, error, isError, refetch } = useQuery(oneEndpoint(zone, id));
  const list = pathIn(zone, "endpoints");
  const back = { to: list, label: "Endpoints" };
  if (data === undefined && isAbsent(error)) return <Absent title={`Endpoint ${id}`} kind="endpoint" zone={zone} back={back} />;
  return (
    <>
      <PageHeader
        title={`Endpoint ${id}`}
        back={back}
        about={data === undefined ? "…" : <span className="mono">{data.value.url}</span>}
        badges={data !== undefined && <EndpointState endpoint={data.value} />}
      >
        {data !== undefined && (
          <>
            <SendExample zone={zone} endpoint={data.value} />
            <EndpointActions zone={zone} endpoint={data.value} onDeleted={() => void navigate(list)} />
          </>
        )}
      </PageHeader>
      <Tabs value={tab} onChange={(next) => void navigate(pathIn(zone, endpointPath(id, next ?? "")))} keepMounted={false}>
        <Tabs.List mb="md" aria-label="About the endpoint">
          {TABS.filter((one) => one !== "secrets" || !isSink(data?.value.kind ?? "https")).map((one) => (
            <Tabs.Tab key={one} value={one}>
              {LABELS[one]}
            </Tabs.Tab>
          ))}
        </Tabs.List>
        {isError && data === undefined && <ProblemAlert error={error} onRetry={() => void refetch()} />}
        {data === undefined && !isError && <Loading h={420} />}
        {data !== undefined && (
          <Tabs.Panel value={tab} tabIndex={-1}>
            <Stack gap="md">{panelOf(tab, { zone, found: data, reload: refetch })}</Stack>
          </Tabs.Panel>
        )}
      </Tabs>
    </>
  );
}

function panelOf(tab: Tab, endpoint: Found): ReactNode {
  switch (tab) {
    case "overview":
      return (
        <>
          <Health endpoint={endpoint.found.value} />
          <CircuitFigure endpoint={endpoint.found.value} />
          <Links zone={endpoint.zone} id={endpoint.found.value.id} />
          <About {...endpoint} />
          <Verification {...endpoint} />
        </>
      );
    case "statistics":
      return (
        <Suspense fallback={<Loading h={420} />}>
          <StatisticsTab zone={endpoint.zone} id={endpoint.found.value.id} />
        </Suspense>
      );
    case "secrets":
      return (
        <>
          <Signature {...endpoint} />
          <Secrets zone={endpoint.zone} found={endpoint.found} />
        </>
      );
    case "authentication":
      return (
        <>
          {!isSink(endpoint.found.value.kind) && <Headers {...endpoint} />}
          <Authentication {...endpoint} />
          {endpoint.found.value.kind !== "postgresql" && <Certificates {...endpoint} />}
        </>
      );
    case "retries":
      return <Retries {...endpoint} />;
  }
}

function Links({ zone, id }: { zone: string; id: number }) {
  return (
    <Group gap="md">
      <Anchor component={Link} to={`${pathIn(zone, "deliveries")}?endpoint=${id}`} size="sm">
        Its deliveries
      </Anchor>
      <Anchor component={Link} to={`${pathIn(zone, "registrations")}?endpoint=${id}`} size="sm">
        Its registrations
      </Anchor>
    </Group>
  );
}
