import { Button } from "@mantine/core";
import { IconPlayerPause, IconPlayerPlay } from "@tabler/icons-react";

import { May } from "../../parts/May";
import { ProblemAlert } from "../../parts/ProblemAlert";
import { Removal } from "../../parts/Removal";
import { type Endpoint, useChangeEndpoint, useDeleteEndpoint } from "./endpoints";

interface Props {
  zone: string;
  endpoint: Endpoint;
  onDeleted: () => void;
}

/** What can be done with an endpoint as a whole. */
export function EndpointActions({ zone, endpoint: { id, enabled, reason }, onDeleted }: Props) {
  const change = useChangeEndpoint(zone, id);
  const remove = useDeleteEndpoint(zone, id);
  return (
    <>
      {change.isError && <ProblemAlert error={change.error} />}
      {reason !== "unverified" && ( // its receiver enables it, by agreeing
        <May>
          <Button
            variant="default"
            loading={change.isPending}
            leftSection={enabled ? <IconPlayerPause size={16} /> : <IconPlayerPlay size={16} />}
            onClick={() => change.mutate({ enabled: !enabled })}
          >
            {enabled ? "Disable" : "Enable"}
          </Button>
        </May>
      )}
      <Removal
        title={`Delete endpoint ${id}?`}
        about="Pending deliveries to it are cancelled. Delete the registrations that name it first."
        removal={remove}
        onConfirm={() => remove.mutate(undefined, { onSuccess: onDeleted })}
      />
    </>
  );
}
