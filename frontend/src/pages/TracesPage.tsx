import { useZone } from "../api/zone";
import { Listening } from "../features/listening/Listening";
import { TRACES, useMonitoring } from "../features/monitoring/monitoring";
import { MonitoringSwitch } from "../features/monitoring/MonitoringSwitch";
import { useStreamNames } from "../features/streams/streams";
import { Empty } from "../parts/Empty";
import { Loading } from "../parts/Loading";
import { PageHeader } from "../parts/PageHeader";

/** The API calls of the zone, as they end, in any filter. */
export function TracesPage() {
  const zone = useZone();
  const monitoring = useMonitoring(zone);
  const streams = useStreamNames(zone);
  const isKept = monitoring.data?.traces || streams.data?.includes(TRACES);
  return (
    <>
      <PageHeader title="Traces" about="The API calls in the zone: method, route, status, duration, request id and caller.">
        <MonitoringSwitch zone={zone} kind="traces" label="Calls are traced" />
      </PageHeader>
      {monitoring.isPending || streams.isPending ? (
        <Loading h={240} />
      ) : isKept ? (
        <Listening stream={TRACES} />
      ) : (
        <Empty
          title="Calls are not traced"
          about="With traces on, each API call in the zone is an event of the stream eventhub.traces. The same traces as lines:"
          command={`eventhub traces --follow --filter '(>= status 400)'`}
        />
      )}
    </>
  );
}
