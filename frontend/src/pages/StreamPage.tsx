import { Tabs } from "@mantine/core";
import { useQuery } from "@tanstack/react-query";
import type { ReactNode } from "react";
import { useNavigate, useParams } from "react-router";

import type { Loaded } from "../api/client";
import { pathIn, useZone } from "../api/zone";
import { Absent, isAbsent } from "../parts/Absent";
import { Missing } from "../parts/Missing";
import { EventsTab } from "../features/history/EventsTab";
import { InterestTab } from "../features/interest/InterestTab";
import { Listening } from "../features/listening/Listening";
import { MatchIndexTab } from "../features/matchIndex/MatchIndexTab";
import { Loading } from "../parts/Loading";
import { PageHeader } from "../parts/PageHeader";
import { ProblemAlert } from "../parts/ProblemAlert";
import { Undisturbed } from "../parts/Undisturbed";
import { whole } from "../parts/text";
import { SegmentsTab } from "../features/segments/SegmentsTab";
import { StateTab } from "../features/state/StateTab";
import { policyOf, retention } from "../features/streams/policy";
import { PolicyBadges } from "../features/streams/PolicyBadges";
import { DeleteStream, StreamDeletionBanner } from "../features/streams/StreamDeletion";
import { StreamPolicy } from "../features/streams/StreamPolicy";
import { oneStream, type Stream } from "../features/streams/streams";

const TABS = ["events", "live", "interest", "match-index", "segments", "state", "policy"] as const;
type Tab = (typeof TABS)[number];
const LABELS: Record<Tab, string> = {
  events: "Events",
  live: "Live",
  interest: "Interest",
  "match-index": "Match index",
  segments: "Segments",
  state: "State",
  policy: "Policy",
};
const INTERVAL_MS = 3_000;

/** One stream; the tab is part of the path. */
export function StreamPage() {
  const zone = useZone();
  const { stream = "", tab: requested = "events" } = useParams();
  const tab = TABS.find((one) => one === requested);
  const navigate = useNavigate();
  const found = useQuery({ ...oneStream(zone, stream), refetchInterval: INTERVAL_MS });
  const { data, error, isError, refetch } = found;

  const back = { to: pathIn(zone, "streams"), label: "Streams" };
  if (tab === undefined) return <Missing />;
  if (data === undefined && isAbsent(error)) return <Absent title={stream} kind="stream" zone={zone} back={back} />;
  return (
    <>
      <PageHeader
        title={stream}
        back={back}
        about={data === undefined ? "…" : aboutOf(data.value)}
        badges={data !== undefined && <PolicyBadges policy={policyOf(data.value)} />}
      >
        {data !== undefined && <DeleteStream zone={zone} stream={data.value} />}
      </PageHeader>
      {data !== undefined && <StreamDeletionBanner zone={zone} stream={data.value} />}
      <Tabs value={tab} onChange={(next) => void navigate(pathIn(zone, `streams/${encodeURIComponent(stream)}/${next ?? ""}`))} keepMounted={false}>
        <Tabs.List mb="md" aria-label="About the stream">
          {TABS.filter((one) => one === tab || hasTab(one, data?.value)).map((one) => (
            <Tabs.Tab key={one} value={one}>
              {LABELS[one]}
            </Tabs.Tab>
          ))}
        </Tabs.List>
        {isError && data === undefined && <ProblemAlert error={error} onRetry={() => void refetch()} />}
        {data === undefined && !isError && <Loading h={420} />}
        {data !== undefined && (
          <Tabs.Panel value={tab} tabIndex={-1}>
            {panelOf(tab, zone, data, refetch)}
          </Tabs.Panel>
        )}
      </Tabs>
    </>
  );
}

/** Only a keyed stream has a state; only the hub writes to `system`, and matches it in memory. */
function hasTab(tab: Tab, stream: Stream | undefined): boolean {
  if (tab === "state") return stream?.keyed === true;
  if (tab === "match-index") return stream !== undefined && stream.name !== "system" && stream.durability !== "transient";
  return tab !== "interest" || stream?.name !== "system";
}

function panelOf(tab: Tab, zone: string, found: Loaded<Stream>, reload: () => Promise<{ data: Loaded<Stream> | undefined }>): ReactNode {
  const { name } = found.value;
  switch (tab) {
    case "events":
      return <EventsTab key={name} stream={name} />;
    case "live":
      return <Listening key={name} stream={name} />;
    case "interest":
      return <InterestTab key={name} zone={zone} stream={found.value} />;
    case "match-index":
      return <MatchIndexTab key={name} zone={zone} stream={name} />;
    case "segments":
      return <SegmentsTab zone={zone} stream={found.value} />;
    case "state":
      return <StateTab zone={zone} stream={found.value} />;
    case "policy":
      return (
        <Undisturbed key={name} found={found} reload={reload}>
          {(kept, renew) => <StreamPolicy zone={zone} found={kept} onRenew={renew} />}
        </Undisturbed>
      );
  }
}

function aboutOf(stream: Stream): string {
  const { first, last } = stream;
  const policy = `Retention: ${retention(policyOf(stream))}`;
  if (last === null || first === null) return `${policy}. Nothing is in memory now.`;
  if (last === 0) return `${policy}. No event yet.`;
  return `${policy}. Sequences ${whole(first)} to ${whole(last)} are stored.`;
}
