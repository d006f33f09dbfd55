import { Button, Select } from "@mantine/core";
import { IconRefresh } from "@tabler/icons-react";
import { type ReactNode, useState } from "react";

import { errorAt } from "../../api/problem";
import { Facts } from "../../parts/Facts";
import { Moment } from "../../parts/Moment";
import { ProblemAlert } from "../../parts/ProblemAlert";
import { State } from "../../parts/State";
import { whole } from "../../parts/text";
import { CHECK, type Endpoint, HANDSHAKES, outcomeOf, useVerifyEndpoint } from "./endpoints";
import { type Editing, type Found, Setting, SettingForm } from "./Setting";

const STATES = {
  none: { state: "untried", text: "not requested" },
  pending: { state: "pending", text: "pending" },
  verified: { state: "ok", text: "verified" },
  failed: { state: "failed", text: "failed" },
} as const;

/** Whether the receiver has agreed to callbacks. */
export function Verification(endpoint: Found) {
  const { id, handshake } = endpoint.found.value;
  const verify = useVerifyEndpoint(endpoint.zone, id);
  return (
    <Setting
      {...endpoint}
      title="Verification"
      about="With a handshake, callbacks are sent only after the receiver at the URL has agreed. A sink is checked before the first event, and after a change."
      aside={
        handshake !== "none" && (
          <Button
            size="compact-sm"
            variant="default"
            leftSection={<IconRefresh size={14} />}
            loading={verify.isPending}
            onClick={() => verify.mutate()}
          >
            Verify now
          </Button>
        )
      }
      form={HandshakeForm}
    >
      {verify.isError && <ProblemAlert error={verify.error} />}
      <Facts facts={factsOf(endpoint.found.value)} />
    </Setting>
  );
}

function factsOf({ handshake, verification, verified_at: agreed, allowed_rate: rate }: Endpoint): [string, ReactNode][] {
  const kind: [string, ReactNode] = ["Handshake", [...HANDSHAKES, CHECK].find((one) => one.value === handshake)?.label ?? handshake];
  if (handshake === "none") return [kind];
  const { state, ended_at: ended, detail } = verification;
  const shown = STATES[state];
  const facts: ([string, ReactNode] | false)[] = [
    kind,
    ["Last verification", <State key="state" state={shown.state} label={shown.text} />],
    ended !== null && ["Ended", <Moment key="ended" at={ended} />],
    state === "failed" && ["Result", [outcomeOf(verification), detail].filter((part) => part !== null && part !== "").join(": ")],
    ["Verified last", agreed === null ? "never" : <Moment key="agreed" at={agreed} />],
    handshake === "cloudevents" && ["Allowed rate", rate === null ? "no bound" : `${whole(rate)} requests per minute`],
  ];
  return facts.filter((fact) => fact !== false);
}

function HandshakeForm({ endpoint, ...form }: Editing) {
  const [handshake, setHandshake] = useState(endpoint.handshake);
  return (
    <SettingForm {...form} fields={["handshake"]} ready={handshake !== endpoint.handshake} body={() => ({ handshake })}>
      <Select
        label="Handshake"
        description="After a change the endpoint is disabled until its receiver agrees."
        data={endpoint.kind === "https" ? [...HANDSHAKES] : [CHECK]}
        value={handshake}
        allowDeselect={false}
        onChange={(chosen) => setHandshake(chosen ?? handshake)}
        error={errorAt(form.change.error, "handshake")}
      />
    </SettingForm>
  );
}
