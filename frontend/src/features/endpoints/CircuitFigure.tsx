import { Box, Stack, Text } from "@mantine/core";
import { IconArrowsExchange } from "@tabler/icons-react";
import { Fragment } from "react";

import { Card } from "../../parts/Card";
import { Facts } from "../../parts/Facts";
import { Moment } from "../../parts/Moment";
import { State } from "../../parts/State";
import { whole } from "../../parts/text";
import classes from "./CircuitFigure.module.css";
import type { Endpoint } from "./endpoints";

const STEPS = [
  { state: "closed", label: "Closed", tone: "good", badge: "ok", about: "Deliveries are sent." },
  {
    state: "open",
    label: "Open",
    tone: "bad",
    badge: "failing",
    about: "The endpoint failed several times in a row. Nothing is sent until the next probe; deliveries wait.",
  },
  {
    state: "half_open",
    label: "Half-open",
    tone: "slow",
    badge: "degraded",
    about: "One request, the probe, is under way. If it succeeds, the circuit closes and deliveries continue.",
  },
] as const;

/** The circuit breaker of an endpoint: its three states with the present one marked, and since when. */
export function CircuitFigure({ endpoint: { circuit } }: { endpoint: Endpoint }) {
  const { state, failures, since, next_probe_at: next } = circuit;
  const now = STEPS.find((step) => step.state === state);
  return (
    <Card title="Circuit">
      <Stack gap="sm" px="md" pb="md">
        <ul className={classes.chart} aria-label="States of the circuit">
          {STEPS.map((step, index) => (
            <Fragment key={step.state}>
              {index > 0 && (
                <li className={classes.arrow} aria-hidden>
                  <IconArrowsExchange size={16} />
                </li>
              )}
              <li className={classes.step} data-tone={step.state === state ? step.tone : undefined} aria-current={step.state === state || undefined}>
                {step.label}
              </li>
            </Fragment>
          ))}
        </ul>
        <Text size="sm">{now?.about}</Text>
        <Box>
          <Facts
            facts={[
              ["Failures in a row", whole(failures)],
              ...(since === null ? [] : [["Open since", <Moment key="since" at={since} />] as const]),
              ...(next === null ? [] : [["Next probe", <NextProbe key="next" at={next} />] as const]),
            ]}
          />
        </Box>
      </Stack>
    </Card>
  );
}

/** The state of the circuit breaker as a badge. */
export function CircuitState({ state }: { state: Endpoint["circuit"]["state"] }) {
  const step = STEPS.find((one) => one.state === state);
  return step && <State state={step.badge} label={step.label.toLowerCase()} />;
}

/** The time of the next probe, which is sent if a delivery is pending. */
function NextProbe({ at }: { at: string }) {
  return (
    <>
      <Moment at={at} />, if a delivery is pending
    </>
  );
}
