import { Alert, Anchor, Group, Stack, Text } from "@mantine/core";
import { useQuery } from "@tanstack/react-query";
import { Link } from "react-router";

import { pathIn } from "../../api/zone";
import { Block } from "../../parts/Block";
import { Card } from "../../parts/Card";
import { Facts } from "../../parts/Facts";
import { Loading } from "../../parts/Loading";
import { ProblemAlert } from "../../parts/ProblemAlert";
import { State } from "../../parts/State";
import { whole } from "../../parts/text";
import type { Stream } from "../streams/streams";
import { type Closure, closureOf } from "./closure";
import classes from "./InterestCard.module.css";

interface Props {
  zone: string;
  stream: Stream;
  audience: readonly string[];
}

/** The union of all registrations' filters on a stream, as a list of alternatives. */
export function InterestCard({ zone, stream, audience }: Props) {
  const { data, error, isError, refetch } = useQuery(closureOf(zone, stream.name, audience));
  if (isError && data === undefined) return <ProblemAlert error={error} onRetry={() => void refetch()} />;
  if (data === undefined) return <Loading h={240} />;
  return (
    <Card title="Interest" aside={<Quenched quench={data.quench} />}>
      <Stack gap="sm" p="md" pt={0}>
        <Text size="sm">{inWords(data)}</Text>
        {data.widened && (
          <Alert color="yellow" variant="light" title="Wider than the registrations">
            The exact filter would be too large. This one matches every requested event, and others.
          </Alert>
        )}
        {data.filter !== "true" && data.alternatives.length > 0 && (
          <ul className={classes.list} aria-label="Alternatives">
            {data.alternatives.map((one) => (
              <li key={one}>
                <Block text={one} label="One alternative" copy="Copy the alternative" wraps />
              </li>
            ))}
          </ul>
        )}
        <Facts
          facts={[
            ["As of", <Anchor key="as" component={Link} to={`${pathIn(zone, "streams/system/events")}?event=${data.sequence}`} size="sm">system {whole(data.sequence)}</Anchor>],
            ...data.supertypes.map(({ domain, type, supertypes }) => [`${domain}::${type}`, `supertypes: ${supertypes.join(", ")}`] as const),
          ]}
        />
      </Stack>
    </Card>
  );
}

function Quenched({ quench }: { quench: boolean }) {
  return (
    <Group gap="xs">
      <State state={quench ? "busy" : "quiet"} label={quench ? "emitters may omit other events" : "everything is emitted"} />
    </Group>
  );
}

function inWords({ filter, alternatives, quench }: Closure): string {
  const who = quench ? "registrations and listeners" : "registrations";
  if (filter === "false") return `No interest: no ${quench ? "registrations or listeners" : who} match events of this stream.`;
  if (filter === "true") return `Every event: some ${who} have no filter.`;
  const count = alternatives.length;
  return `Union of the ${who}: ${count === 1 ? "1 alternative" : `${whole(count)} alternatives`}. Filters that another one covers are omitted.`;
}
