import { Alert, Anchor, SimpleGrid, Text } from "@mantine/core";
import { IconFlask } from "@tabler/icons-react";
import { Link } from "react-router";

import { pathIn } from "../../api/zone";
import { Judgement } from "../jobs/Judgement";
import type { OneRun, ResultProps } from "../jobs/types";
import { Figure } from "../../parts/Figure";
import { bytes, capital, whole } from "../../parts/text";
import { Apply } from "./Apply";
import { ACTIONS, isTry, MEANINGS, type Plan, planOf } from "./plan";
import { PlanSegments } from "./PlanSegments";
import { Shares } from "./Shares";

/** A retention plan, which changes nothing until it is applied. */
export function PlanResult({ zone, run }: ResultProps) {
  const plan = planOf(run);
  return (
    <>
      <Judgement run={run} />
      <Totals plan={plan} />
      {isTry(run) && <Tried zone={zone} run={run} />}
      <Apply run={run} plan={plan} />
      <Shares plan={plan} />
      <PlanSegments zone={zone} plan={plan} />
    </>
  );
}

function Totals({ plan }: { plan: Plan }) {
  return (
    <SimpleGrid cols={{ base: 2, lg: 4 }} spacing="md">
      {ACTIONS.map((action) => {
        const { segments, bytes: size } = plan.actions[action];
        return (
          <Figure
            key={action}
            label={capital(action)}
            value={bytes(size)}
            about={`in ${whole(segments)} ${segments === 1 ? "segment" : "segments"}: ${MEANINGS[action]}`}
          />
        );
      })}
    </SimpleGrid>
  );
}

/** A note that the plan uses proposed policies, which applying it does not change. */
function Tried({ zone, run: { params } }: { zone: string; run: OneRun }) {
  const policies = params.policies as Record<string, unknown>;
  const own = typeof params.zone === "string" ? params.zone : zone;
  return (
    <Alert color="iris" variant="light" icon={<IconFlask />} title="Plan with proposed policies">
      <Text size="sm">
        Nothing was changed. Applying the plan carries it out once and leaves the policies as they are. To make the change permanent, edit the
        policy of{" "}
        {Object.keys(policies).map((stream, at) => (
          <span key={stream}>
            {at > 0 && ", "}
            <Anchor component={Link} to={pathIn(own, `streams/${encodeURIComponent(stream)}/policy`)} size="sm">
              {stream}
            </Anchor>
          </span>
        ))}
        .
      </Text>
    </Alert>
  );
}
