import { Anchor, Stack, Title } from "@mantine/core";
import { useQuery } from "@tanstack/react-query";
import type { ReactNode } from "react";
import { Link } from "react-router";

import { api, done } from "../../api/client";
import { pathIn } from "../../api/zone";
import { Facts } from "../../parts/Facts";
import { Json } from "../../parts/Json";
import { Loading } from "../../parts/Loading";
import { Moment } from "../../parts/Moment";
import { ProblemAlert } from "../../parts/ProblemAlert";
import { visible, whole } from "../../parts/text";
import { type Act, callerOf, searchOf } from "./trail";

/** One act with its caller, its event, and what else the request and the action did. */
export function ActDetail({ zone, sequence }: { zone: string; sequence: string }) {
  const { data, error, isError, refetch } = useQuery({
    queryKey: ["audit-act", zone, sequence],
    queryFn: () => done(api.GET("/v1/audit/{sequence}", { params: { path: { sequence }, query: { zone } } })),
    staleTime: Infinity,
  });
  if (isError) return <ProblemAlert error={error} onRetry={() => void refetch()} />;
  if (data === undefined) return <Loading h={260} />;
  return (
    <Stack gap="lg">
      <Facts facts={factsOf(zone, data)} />
      <section>
        <Title order={2} mb="xs">
          What changed
        </Title>
        <Json value={data.attributes} label="the attributes" />
      </section>
    </Stack>
  );
}

function factsOf(zone: string, act: Act): [string, ReactNode][] {
  const { sequence, at, resource, by, correlation } = act;
  const facts: ([string, ReactNode] | false)[] = [
    ["Act", act.type],
    ["Resource", `${resource.kind} ${visible(resource.name)}`],
    ["Zone", act.zone ?? "the whole hub"],
    ["Caller", visible(callerOf(act))],
    by.address !== undefined && ["Address", <Only key="address" zone={zone} name="address" value={by.address} />],
    ["Time", <Moment key="at" at={at} />],
    by.request_id !== undefined && ["Request", <Only key="request" zone={zone} name="request_id" value={by.request_id} />],
    correlation !== "" && ["Action", <Only key="action" zone={zone} name="correlation" value={correlation} />],
    [
      "Event",
      <Anchor key="event" component={Link} to={`${pathIn(zone, "streams/system/events")}?event=${sequence}`} size="sm">
        system {whole(sequence)}
      </Anchor>,
    ],
  ];
  return facts.filter((fact) => fact !== false);
}

/** A value that leads to all acts that have it. */
function Only({ zone, name, value }: { zone: string; name: "address" | "request_id" | "correlation"; value: string }) {
  return (
    <Anchor component={Link} to={`${pathIn(zone, "audit-trail")}?${searchOf({ [name]: value }).toString()}`} size="sm" className="mono">
      {visible(value)}
    </Anchor>
  );
}
