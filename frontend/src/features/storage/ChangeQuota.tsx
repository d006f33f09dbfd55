import { Button, Text } from "@mantine/core";
import { IconAdjustments } from "@tabler/icons-react";
import { useState } from "react";

import { errorAt } from "../../api/problem";
import { AmountInput, BYTES } from "../../parts/AmountInput";
import { Form } from "../../parts/Form";
import { May } from "../../parts/May";
import { Side } from "../../parts/Side";
import { useChangeQuota } from "./storage";

/** The button that opens the form of the quota. */
export function ChangeQuota({ zone, quota }: { zone: string; quota: number | null }) {
  const [open, setOpen] = useState(false);
  const [requested, setRequested] = useState(quota);
  const change = useChangeQuota(zone);
  const begin = () => {
    setRequested(quota);
    setOpen(true);
  };
  return (
    <>
      <May>
        <Button variant="default" leftSection={<IconAdjustments size={16} />} onClick={begin}>
          Change the quota
        </Button>
      </May>
      <Side of={open || undefined} title={() => "Quota"} size="md" onClose={() => setOpen(false)}>
        {() => (
          <Form
            fields={["quota_bytes"]}
            error={change.error}
            busy={change.isPending}
            action="Save"
            ready={requested !== quota}
            onSubmit={() => change.mutate(requested, { onSuccess: () => setOpen(false) })}
          >
            <Text size="sm" c="dimmed">
              When the events of the whole hub reach it, the oldest sealed segments are dropped until they fit, also those that somebody
              still needs; each gap is announced. What is on hold is never dropped.
            </Text>
            <AmountInput
              label="Quota"
              description="Empty: the setting of the hub."
              units={BYTES}
              value={requested}
              onChange={setRequested}
              error={errorAt(change.error, "quota_bytes")}
            />
          </Form>
        )}
      </Side>
    </>
  );
}
