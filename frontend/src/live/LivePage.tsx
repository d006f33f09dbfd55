import { Paper, Stack } from "@mantine/core";
import { useEffect } from "react";
import { useSearchParams } from "react-router";

import { useZone } from "../api/zone";
import { Empty } from "../parts/Empty";
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
  const wish = wishOf(zone, search);
  const chosen = wish !== undefined;
  const first = streams.data?.[0];

  useEffect(() => {
    if (!chosen && first !== undefined) setSearch({ stream: first }, { replace: true });
  }, [chosen, first, setSearch]);

  return (
    <>
      <PageHeader title="Live events" about="Events as they are appended, or from any place that is still held." />
      <Stack gap="md">
        {streams.isError && <ProblemAlert error={streams.error} onRetry={() => void streams.refetch()} />}
        <Paper withBorder bg="var(--card)" p="md">
          <WishForm
            key={search.toString()}
            wish={wish}
            streams={streams.data ?? ["system"]}
            onListen={(next) => setSearch(searchOf(next))}
          />
        </Paper>
        {wish === undefined ? (
          <Empty title="Choose a stream" about="Its events appear here as they are appended." />
        ) : (
          <LiveView key={search.toString()} wish={wish} />
        )}
      </Stack>
    </>
  );
}
