import { Alert, Text } from "@mantine/core";
import { IconPlugConnectedX } from "@tabler/icons-react";

import { Moment } from "../parts/Moment";
import type { Staleness } from "./freshness";

/** A banner with the time of the last data while the hub does not answer; the page below loses its status colours. */
export function Stale({ stale: { asOf, why } }: { stale: Staleness }) {
  return (
    <Alert color="gray" variant="light" icon={<IconPlugConnectedX />} role="status" mb="md" title="Not up to date">
      <Text size="sm">
        {why} What is shown is as of <Moment at={new Date(asOf).toISOString()} />.
      </Text>
    </Alert>
  );
}
