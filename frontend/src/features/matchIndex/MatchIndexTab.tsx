import { Anchor, Button, SimpleGrid, Stack, Text } from "@mantine/core";
import { IconHammer } from "@tabler/icons-react";
import { useQuery } from "@tanstack/react-query";
import { Link } from "react-router";

import { pathIn } from "../../api/zone";
import { Card } from "../../parts/Card";
import { Facts } from "../../parts/Facts";
import { Figure } from "../../parts/Figure";
import { Loading } from "../../parts/Loading";
import { May } from "../../parts/May";
import { Moment } from "../../parts/Moment";
import { ProblemAlert } from "../../parts/ProblemAlert";
import { State } from "../../parts/State";
import { bytes, whole } from "../../parts/text";
import { BuildState } from "./BuildState";
import { type Epoch, isBusy, type MatchIndex, matchIndexOf, useBuild } from "./matchIndex";

/** The match index of a stream: files for matching against very many registrations. */
export function MatchIndexTab({ zone, stream }: { zone: string; stream: string }) {
  const { data, error, isError, refetch } = useQuery(matchIndexOf(zone, stream));
  if (isError && data === undefined) return <ProblemAlert error={error} onRetry={() => void refetch()} />;
  if (data === undefined) return <Loading h={300} />;
  return (
    <Stack gap="md">
      {data.index !== null && <Figures index={data.index} found={data} />}
      <Card title="Match index" aside={<Word found={data} />}>
        <Stack gap="md" p="md" pt={0}>
          <Text size="sm" maw={760}>
            {data.index === null && ABOUT} {data.why}
          </Text>
          {data.index !== null && <Where zone={zone} index={data.index} />}
          <BuildState build={data.build} />
          {data.buildable && <BuildNow zone={zone} stream={stream} found={data} />}
        </Stack>
      </Card>
    </Stack>
  );
}

function Figures({ index, found: { changed_since: changed, due } }: { index: Epoch; found: MatchIndex }) {
  return (
    <SimpleGrid cols={{ base: 2, lg: 4 }} spacing="md">
      <Figure label="Registrations in it" value={whole(index.registrations)} about={`in ${whole(index.entries)} entries`} />
      <Figure label="Changed since" value={due ? `${whole(changed)} or more` : whole(changed)} about={changed === 0 ? "no registration has started or ended" : "matched in memory meanwhile"} />
      <Figure label="Size" value={bytes(index.bytes)} about="on the disk, shared by all processes" />
      <Figure label="Built" value={index.built_at === null ? "just now" : <Moment at={index.built_at} />} about={`epoch ${whole(index.epoch)}`} />
    </SimpleGrid>
  );
}

function Where({ zone, index }: { zone: string; index: Epoch }) {
  return (
    <Facts
      facts={[
        [
          "As of",
          <Anchor key="as" component={Link} to={`${pathIn(zone, "streams/system/events")}?event=${index.built_through_sequence}`} size="sm">
            system {whole(index.built_through_sequence)}
          </Anchor>,
        ],
      ]}
    />
  );
}

function BuildNow({ zone, stream, found }: { zone: string; stream: string; found: MatchIndex }) {
  const build = useBuild(zone, stream);
  const busy = isBusy(found.build);
  return (
    <>
      {build.error !== null && <ProblemAlert error={build.error} />}
      <div>
        <May>
          <Button leftSection={<IconHammer size={16} />} disabled={busy} loading={build.isPending} onClick={() => build.mutate()}>
            Build now
          </Button>
        </May>
      </div>
    </>
  );
}

function Word({ found: { index, due, build } }: { found: MatchIndex }) {
  if (isBusy(build)) return <State state={build.state === "building" ? "pending" : "waiting"} label={build.state} />;
  if (due) return <State state="waiting" label="due" />;
  return <State state={index === null ? "quiet" : "ok"} label={index === null ? "none" : "current"} />;
}

const ABOUT = "A match index is a set of files by which events are matched when a stream has very many registrations with an endpoint. All processes share them, and open them in milliseconds.";
