import { Anchor } from "@mantine/core";
import type { ReactNode } from "react";
import { Link } from "react-router";

import { pathIn } from "../../api/zone";
import { RegistrationLink } from "../streams/links";
import { Card } from "../../parts/Card";
import { Facts } from "../../parts/Facts";
import { Json } from "../../parts/Json";
import { Moment } from "../../parts/Moment";
import { stateText, whole } from "../../parts/text";
import type { Replay } from "./replays";
import { rangeText, SOURCES } from "./words";

/** What a run sends, and how. */
export function ReplayAbout({ zone, replay }: { zone: string; replay: Replay }) {
  return (
    <Card title="Selection">
      <div style={{ padding: "0 16px 16px" }}>
        <Facts facts={factsOf(zone, replay)} />
      </div>
    </Card>
  );
}

function factsOf(zone: string, { source, endpoint, client, selection: found, rate, limit, force, new_id: newId }: Replay): [string, ReactNode][] {
  const facts: [string, ReactNode][] = [
    ["Source", SOURCES[source]],
    [
      "Endpoint",
      <Anchor key="endpoint" component={Link} to={`${pathIn(zone, "deliveries")}?endpoint=${endpoint}`} size="sm">
        {endpoint} of {client}
      </Anchor>,
    ],
  ];
  if (found.ranges !== null) facts.push(["Range", found.ranges.map(rangeText).join("; ")]);
  if (found.registration !== null) facts.push(["Registration", <Registration key="registration" zone={zone} id={found.registration} version={found.version} />]);
  if (found.filter !== null) facts.push([`Filter, ${found.language ?? "pairs"}`, <Filter key="filter" filter={found.filter} />]);
  if (found.states !== null) facts.push(["States", found.states.map(stateText).join(", ")]);
  if (found.outcome !== null) facts.push(["Outcome", found.outcome.replaceAll("_", " ")]);
  if (found.status !== null) facts.push(["Status code", found.status]);
  if (found.since !== null) facts.push(["Ended since", <Moment key="since" at={found.since} />]);
  if (found.until !== null) facts.push(["Ended until", <Moment key="until" at={found.until} />]);
  facts.push(["Rate", `${whole(rate)} per second, at most`]);
  facts.push(["Stops at", limit === null ? "no limit" : `${whole(limit)} deliveries`]);
  if (source === "log") facts.push(["Force", force ? "yes: also what was delivered or discarded, or has expired" : "no"]);
  facts.push(["webhook-id", newId ? "new" : "the same as the first time"]);
  return facts;
}

function Registration({ zone, id, version }: { zone: string; id: number; version: number | null }) {
  return (
    <>
      <RegistrationLink zone={zone} id={id} />
      {version !== null && `, version ${version}`}
    </>
  );
}

function Filter({ filter }: { filter: unknown }) {
  return typeof filter === "string" ? <span className="mono">{filter}</span> : <Json value={filter} label="the filter" />;
}
