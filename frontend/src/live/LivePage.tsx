import { Paper, Stack } from "@mantine/core";
import { useEffect } from "react";
import { useSearchParams } from "react-router";

import { type Faults, isFaulty } from "../api/address";
import { useZone } from "../api/zone";
import { Empty } from "../parts/Empty";
import { FaultAlert } from "../parts/FaultAlert";
import { PageHeader } from "../parts/PageHeader";
import { ProblemAlert } from "../parts/ProblemAlert";
import { useStreams } from "../streams/useStreams";
import { LiveView } from "./LiveView";
import { searchOf, wishOf } from "./wish";
import { WishForm } from "./WishForm";

export function LivePage() {
  const zone = useZone();
  const [search, setSearch] = useSearchParams();
  const streams = useStreams(zone);
  const faults: Faults = {};
  const wish = wishOf(zone, search, faults);
  const chosen = wish !== undefined;
  const first = streams.data?.[0];

  useEffect(() => {
    if (!chosen && first !== undefined) setSearch(streamed(search, first), { replace: true });
  }, [chosen, first, search, setSearch]);

  return (
    <>
      <PageHeader title="Live events" about="Events as they are appended, or from any place that is still held." />
      <Stack gap="md">
        {streams.isError && <ProblemAlert error={streams.error} onRetry={() => void streams.refetch()} />}
        <Paper withBorder bg="var(--card)" p="md">
          <WishForm
            key={search.toString()}
            wish={wish}
            faults={faults}
            streams={streams.data ?? ["system"]}
            onListen={(next) => setSearch(searchOf(next))}
          />
        </Paper>
        {isFaulty(faults) ? (
          <FaultAlert faults={faults} search={search} />
        ) : wish === undefined ? (
          <Empty title="Choose a stream" about="Its events appear here as they are appended." />
        ) : (
          <LiveView key={search.toString()} wish={wish} />
        )}
      </Stack>
    </>
  );
}

/** The same address on a stream. */
function streamed(search: URLSearchParams, stream: string): URLSearchParams {
  const next = new URLSearchParams(search);
  next.set("stream", stream);
  return next;
}
