import { Button, Text } from "@mantine/core";
import { IconAdjustments } from "@tabler/icons-react";
import { useState } from "react";

import { errorAt } from "../../api/problem";
import { AmountInput } from "../../parts/AmountInput";
import { Form } from "../../parts/Form";
import { May } from "../../parts/May";
import { Side } from "../../parts/Side";
import { BOUNDED, type Limits, type Quotas, useLimits, useSetQuotas } from "./limits";

/** The button that opens the form of the quotas of a client, or without one of the zone. */
export function ChangeLimits({ zone, client }: { zone: string; client?: string }) {
  const [open, setOpen] = useState(false);
  const { data } = useLimits(zone, client);
  return (
    <>
      <May>
        <Button variant="default" leftSection={<IconAdjustments size={16} />} disabled={data === undefined} onClick={() => setOpen(true)}>
          Change the limits
        </Button>
      </May>
      <Side of={open ? (client ?? zone) : undefined} title={(name) => `Limits of ${name}`} size="md" onClose={() => setOpen(false)}>
        {() => data !== undefined && <LimitsForm zone={zone} client={client} limits={data} onSaved={() => setOpen(false)} />}
      </Side>
    </>
  );
}

interface Props {
  zone: string;
  client?: string;
  limits: Limits;
  onSaved: () => void;
}

function LimitsForm({ zone, client, limits, onSaved }: Props) {
  const change = useSetQuotas(zone, client);
  const kinds = BOUNDED.filter(({ kind }) => limits[kind] !== undefined);
  const [quotas, setQuotas] = useState<Quotas>(() => Object.fromEntries(kinds.map(({ kind }) => [kind, limits[kind]?.quota ?? null])));
  return (
    <Form
      fields={kinds.map(({ kind }) => kind)}
      error={change.error}
      busy={change.isPending}
      action="Save"
      onSubmit={() => change.mutate(quotas, { onSuccess: onSaved })}
    >
      <Text size="sm" c="dimmed">
        {client === undefined
          ? "For all clients of the zone together. A client may have lower limits of its own."
          : "For this client. The limits of the zone apply too."}{" "}
        A limit below the present use refuses what is new; only pending deliveries are dropped.
      </Text>
      {kinds.map(({ kind, label, beyond, units }) => (
        <AmountInput
          key={kind}
          label={label}
          description={`Beyond it ${beyond}.`}
          units={units}
          value={quotas[kind] ?? null}
          onChange={(value) => setQuotas((before) => ({ ...before, [kind]: value }))}
          error={errorAt(change.error, kind)}
        />
      ))}
    </Form>
  );
}
