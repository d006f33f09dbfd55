import { Button, Paper } from "@mantine/core";
import { useState } from "react";

import type { Loaded } from "../../api/client";
import { Form } from "../../parts/Form";
import { changeOf, DEFAULTS, policyOf } from "./policy";
import { PolicyFields } from "./PolicyFields";
import { type Stream, usePutStream } from "./streams";

interface Props {
  zone: string;
  found: Loaded<Stream>;
  onRenew: () => void;
}

/** The policy of a stream, to be read and changed. */
export function StreamPolicy({ zone, found: { value, etag }, onRenew }: Props) {
  const before = policyOf(value);
  const put = usePutStream(zone, etag);
  const [policy, setPolicy] = useState(before);
  const change = changeOf(before, policy);
  const changed = Object.keys(change).length > 0;
  return (
    <Paper withBorder bg="var(--card)" p="lg" maw={860}>
      <Form
        fields={Object.keys(DEFAULTS)}
        error={put.error}
        busy={put.isPending}
        action="Save"
        ready={changed}
        onSubmit={() => put.mutate({ name: value.name, policy: change }, { onSuccess: onRenew })}
        onReload={onRenew}
        aside={
          <Button variant="default" disabled={!changed} onClick={() => setPolicy(before)}>
            Undo
          </Button>
        }
      >
        <PolicyFields policy={policy} isNew={false} error={put.error} onChange={(part) => setPolicy({ ...policy, ...part })} />
      </Form>
    </Paper>
  );
}
