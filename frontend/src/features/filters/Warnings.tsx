import { Alert, Anchor } from "@mantine/core";
import { IconAlertTriangle } from "@tabler/icons-react";
import { Link } from "react-router";

import type { Check } from "./check";
import { pathIn } from "../../api/zone";

const WARNINGS = {
  never_matches: "No event can match this filter",
  always_matches: "Every event matches this filter",
  equal_to: "Another registration has an equal filter",
  data_not_filterable: "The filter reads data, and a stream does not let filters read bodies",
  unknown_attribute: "The declared type does not have an attribute that the filter tests",
} as const;

interface Props {
  zone: string;
  warnings: Check["warnings"];
  equalTo: number | null; // the registration with an equal filter
}

/** Warnings about probable mistakes. */
export function Warnings({ zone, warnings, equalTo }: Props) {
  return warnings.map((warning) => (
    <Alert key={warning} color="yellow" variant="light" mb="xs" icon={<IconAlertTriangle />} title={WARNINGS[warning]}>
      {warning === "equal_to" && equalTo !== null && (
        <>
          With the same streams and client:{" "}
          <Anchor component={Link} to={`${pathIn(zone, "registrations")}?registration=${equalTo}`} size="sm" c="inherit" td="underline">
            registration {equalTo}
          </Anchor>
          .
        </>
      )}
    </Alert>
  ));
}
