import { useSearchParams } from "react-router";

import { useZone } from "../api/zone";
import { PageHeader } from "../parts/PageHeader";
import { ProblemAlert } from "../parts/ProblemAlert";
import { useStreamNames } from "../features/streams/streams";
import { Listening } from "../features/listening/Listening";

/** The zone's first stream, if the address names none. */
export function LivePage() {
  const [search] = useSearchParams();
  const streams = useStreamNames(useZone());
  return (
    <>
      <PageHeader title="Live events" about="Events as they are appended, or from any place that is still held." />
      {streams.isError && <ProblemAlert error={streams.error} onRetry={() => void streams.refetch()} />}
      <Listening stream={search.get("stream") || streams.data?.[0]} streams={streams.data ?? ["system"]} />
    </>
  );
}
