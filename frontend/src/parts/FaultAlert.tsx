import { Alert, Text } from "@mantine/core";
import { IconAlertCircle } from "@tabler/icons-react";

import type { Faults } from "../api/address";
import { capital, visible } from "./text";

/** Shows the parameters of the address that cannot be read. */
export function FaultAlert({ faults, search }: { faults: Faults; search: URLSearchParams }) {
  return (
    <Alert color="red" variant="light" icon={<IconAlertCircle />} role="alert" title="The address cannot be read">
      {Object.entries(faults).map(([name, fault]) => (
        <Text key={name} size="sm">
          {capital(name)} <span className="mono">{visible(search.get(name) ?? "")}</span>: {fault}
        </Text>
      ))}
    </Alert>
  );
}
