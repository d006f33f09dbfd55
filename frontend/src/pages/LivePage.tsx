import { useSearchParams } from "react-router";

import { useZone } from "../api/zone";
import { PageHeader } from "../parts/PageHeader";
import { ProblemAlert } from "../parts/ProblemAlert";
import { useStreamNames } from "../features/streams/streams";
import { Listening } from "../features/listening/Listening";

/** Live events; the default is the zone's first stream. */
export function LivePage() {
  const [search] = useSearchParams();
  const streams = useStreamNames(useZone());
  return (
    <>
      <PageHeader title="Live events" about="Events as they are appended, or from any retained position." />
      {streams.isError && <ProblemAlert error={streams.error} onRetry={() => void streams.refetch()} />}
      <Listening stream={search.get("stream") || streams.data?.[0]} streams={streams.data ?? ["system"]} />
    </>
  );
}
