import { Group, Pill, SegmentedControl } from "@mantine/core";

import type { Faults } from "../../api/address";
import { EndpointSelect } from "../endpoints/EndpointSelect";
import { capital, stateText, whole } from "../../parts/text";
import classes from "./DeliveryFilters.module.css";
import { type DeliveryFilter, isOfAll, STATES } from "./deliveries";

const ALL = "all";

interface Props {
  zone: string;
  filter: DeliveryFilter;
  faults: Faults;
  onChange: (filter: DeliveryFilter) => void;
}

export function DeliveryFilters({ zone, filter, faults, onChange }: Props) {
  const { endpoint, stream, sequence, state } = filter;
  return (
    <Group gap="sm" mb="md">
      {sequence === undefined ? (
        <EndpointSelect
          zone={zone}
          aria-label="Endpoint"
          placeholder={isOfAll(filter) ? "All endpoints" : "Choose an endpoint"}
          value={endpoint}
          error={"endpoint" in faults}
          onChange={(chosen) => onChange({ endpoint: chosen, state })}
          w={{ base: "100%", xs: 340 }}
        />
      ) : (
        <Pill size="lg" withRemoveButton removeButtonProps={{ "aria-label": "Filter by endpoint instead", tabIndex: 0, "aria-hidden": false }} onRemove={() => onChange({ state })}>
          Event {stream} {whole(sequence)}
        </Pill>
      )}
      <SegmentedControl
        aria-label="State"
        className={classes.states}
        classNames={{ control: classes.one, label: classes.state }}
        data={[ALL, ...STATES].map((value) => ({ value, label: capital(stateText(value)) }))}
        value={"state" in faults ? "" : (state ?? ALL)}
        onChange={(chosen) => onChange({ ...filter, state: STATES.find((one) => one === chosen) })}
      />
    </Group>
  );
}
