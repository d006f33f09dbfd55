import { Paper, Stack } from "@mantine/core";
import { useSearchParams } from "react-router";

import { type Faults, isFaulty } from "../../api/address";
import { useZone } from "../../api/zone";
import { Empty } from "../../parts/Empty";
import { FaultAlert } from "../../parts/FaultAlert";
import { LiveView } from "./LiveView";
import { searchOf, listenRequestOf } from "./request";
import { ListenForm } from "./ListenForm";

interface Props {
  stream: string | undefined;
  streams?: string[]; // to choose from, unless the page is about one stream
}

/** The listen request of the address, as a form, and the events of its listener. */
export function Listening({ stream, streams }: Props) {
  const zone = useZone();
  const [search, setSearch] = useSearchParams();
  const faults: Faults = {};
  const request = listenRequestOf(zone, search, faults, stream);
  return (
    <Stack gap="md">
      <Paper withBorder bg="var(--card)" p="md">
        <ListenForm
          key={`${search.toString()} ${stream ?? ""}`}
          request={request}
          faults={faults}
          streams={streams}
          newest="Now"
          action="Listen"
          onRequest={(next) => setSearch(searchOf(next))}
        />
      </Paper>
      {isFaulty(faults) ? (
        <FaultAlert faults={faults} search={search} />
      ) : request === undefined ? (
        <Empty title="Choose a stream" about="Its events appear here as they are appended." />
      ) : (
        <LiveView key={`${search.toString()} ${stream ?? ""}`} request={request} />
      )}
    </Stack>
  );
}
