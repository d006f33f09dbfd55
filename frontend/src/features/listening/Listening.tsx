import { Paper, Stack } from "@mantine/core";
import { useSearchParams } from "react-router";

import { type Faults, isFaulty } from "../../api/address";
import { useZone } from "../../api/zone";
import { Empty } from "../../parts/Empty";
import { FaultAlert } from "../../parts/FaultAlert";
import { LiveView } from "./LiveView";
import { searchOf, wishOf } from "./wish";
import { WishForm } from "./WishForm";

interface Props {
  stream: string | undefined;
  streams?: string[]; // to choose from, unless the page is of one
}

/** What is listened to, as it stands in the address, and its events as they come. */
export function Listening({ stream, streams }: Props) {
  const zone = useZone();
  const [search, setSearch] = useSearchParams();
  const faults: Faults = {};
  const wish = wishOf(zone, search, faults, stream);
  return (
    <Stack gap="md">
      <Paper withBorder bg="var(--card)" p="md">
        <WishForm
          key={`${search.toString()} ${stream ?? ""}`}
          wish={wish}
          faults={faults}
          streams={streams}
          newest="Now"
          action="Listen"
          onWish={(next) => setSearch(searchOf(next))}
        />
      </Paper>
      {isFaulty(faults) ? (
        <FaultAlert faults={faults} search={search} />
      ) : wish === undefined ? (
        <Empty title="Choose a stream" about="Its events appear here as they are appended." />
      ) : (
        <LiveView key={`${search.toString()} ${stream ?? ""}`} wish={wish} />
      )}
    </Stack>
  );
}
