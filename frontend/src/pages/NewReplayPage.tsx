import { SegmentedControl } from "@mantine/core";
import { useSearchParams } from "react-router";

import { pathIn, useZone } from "../api/zone";
import { PageHeader } from "../parts/PageHeader";
import { LogForm } from "../features/replays/LogForm";
import { RecoverForm } from "../features/replays/RecoverForm";

const SOURCES = [
  { value: "log", label: "Events of the log" },
  { value: "deliveries", label: "Failed deliveries" },
];

/** The form of a new replay run. */
export function NewReplayPage() {
  const zone = useZone();
  const [search, setSearch] = useSearchParams();
  const source = search.get("source") === "deliveries" ? "deliveries" : "log";
  const endpoint = search.get("endpoint");
  return (
    <>
      <PageHeader
        title="New replay"
        back={{ to: pathIn(zone, "replays"), label: "Replays" }}
        about="A background run. The preview shows what it would send, and how long it would take, before it starts."
      />
      <SegmentedControl
        aria-label="What to send"
        data={SOURCES}
        value={source}
        onChange={(chosen) => setSearch({ source: chosen, ...(endpoint === null ? {} : { endpoint }) }, { replace: true })}
        mb="md"
      />
      {source === "log" ? <LogForm key="log" zone={zone} /> : <RecoverForm key={search.toString()} zone={zone} />}
    </>
  );
}
