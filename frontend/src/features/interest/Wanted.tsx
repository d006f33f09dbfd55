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
import classes from "./Wanted.module.css";

interface Props {
  zone: string;
  stream: Stream;
  audience: readonly string[];
}

/** The one filter that lets through what anybody asks for, in its parts. */
export function Wanted({ zone, stream, audience }: Props) {
  const { data, error, isError, refetch } = useQuery(closureOf(zone, stream.name, audience));
  if (isError && data === undefined) return <ProblemAlert error={error} onRetry={() => void refetch()} />;
  if (data === undefined) return <Loading h={240} />;
  return (
    <Card title="What is wanted" aside={<Quenched quench={data.quench} />}>
      <Stack gap="sm" p="md" pt={0}>
        <Text size="sm">{inWords(data)}</Text>
        {data.widened && (
          <Alert color="yellow" variant="light" title="It lets through more than is wanted">
            All that is asked for would be too much to tell. Nothing that is wanted is left out.
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
            ...data.supertypes.map(({ domain, type, supertypes }) => [`${domain}::${type}`, `has the supertypes ${supertypes.join(", ")}`] as const),
          ]}
        />
      </Stack>
    </Card>
  );
}

function Quenched({ quench }: { quench: boolean }) {
  return (
    <Group gap="xs">
      <State state={quench ? "busy" : "quiet"} label={quench ? "emitters may leave out the rest" : "everything is emitted"} />
    </Group>
  );
}

function inWords({ filter, alternatives, quench }: Closure): string {
  const who = quench ? "registrations and listens" : "registrations";
  if (filter === "false") return `Nothing: there are no ${quench ? "registrations or listens" : who} that want an event of this stream.`;
  if (filter === "true") return `Every event: some of the ${who} ask for all.`;
  const count = alternatives.length;
  return `What the ${who} ask for together: events for which ${count === 1 ? "this holds" : `one of these ${whole(count)} holds`}. What another one covers is left out.`;
}
