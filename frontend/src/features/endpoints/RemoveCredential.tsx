import { Button } from "@mantine/core";
import { useState } from "react";

import { Confirm } from "../../parts/Confirm";
import { useChangeEndpoint } from "./endpoints";
import type { Found } from "./Setting";

interface Props extends Found {
  kind: "authentication" | "tls";
  name: string; // `certificates`
}

/** The button that removes a credential of an endpoint, after a confirmation. */
export function RemoveCredential({ zone, found: { value, etag }, kind, name }: Props) {
  const [asking, setAsking] = useState(false);
  const change = useChangeEndpoint(zone, value.id, etag);
  const close = () => setAsking(false);
  return (
    <>
      <Button
        size="compact-sm"
        variant="light"
        color="red"
        aria-label={`Remove the ${name}`}
        onClick={() => {
          change.reset();
          setAsking(true);
        }}
      >
        Remove
      </Button>
      <Confirm
        opened={asking}
        title={`Remove the ${name}?`}
        about={`Callbacks are sent without the ${name} from now on. The hub forgets the stored secret.`}
        action="Remove"
        busy={change.isPending}
        error={change.error}
        onConfirm={() => change.mutate({ [kind]: null }, { onSuccess: close })}
        onClose={close}
      />
    </>
  );
}
