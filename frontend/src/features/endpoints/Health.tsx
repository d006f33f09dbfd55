import { SimpleGrid } from "@mantine/core";

import { Figure } from "../../parts/Figure";
import { Moment } from "../../parts/Moment";
import { State } from "../../parts/State";
import { type Endpoint, outcomeOf } from "./endpoints";

/** How an endpoint has answered lately. */
export function Health({ endpoint: { health } }: { endpoint: Endpoint }) {
  const { state, last_attempt_at: last, delivered_at: delivered, failing_since: failing } = health;
  return (
    <SimpleGrid cols={{ base: 1, sm: 3 }} spacing="md">
      <Figure
        label="Health"
        value={<State state={state} />}
        about={failing === null ? "By the last attempt." : <>Since <Moment at={failing} />, without a success.</>}
      />
      <Figure
        label="Last attempt"
        value={last === null ? "none yet" : <Moment at={last} />}
        about={last === null ? "No callback has been sent." : `Result: ${outcomeOf(health)}`}
      />
      <Figure
        label="Last delivered"
        value={delivered === null ? "none" : <Moment at={delivered} />}
        about="The last attempt that was answered with 2xx."
      />
    </SimpleGrid>
  );
}
