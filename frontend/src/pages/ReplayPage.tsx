import { Alert, Stack, Text } from "@mantine/core";
import { IconAlertCircle } from "@tabler/icons-react";
import { useQuery } from "@tanstack/react-query";
import { useParams } from "react-router";

import { numberIn } from "../api/address";
import { pathIn, useZone } from "../api/zone";
import { Absent, isAbsent } from "../parts/Absent";
import { Loading } from "../parts/Loading";
import { Missing } from "../parts/Missing";
import { Moment } from "../parts/Moment";
import { PageHeader } from "../parts/PageHeader";
import { ProblemAlert } from "../parts/ProblemAlert";
import { State } from "../parts/State";
import { ReplayAbout } from "../features/replays/ReplayAbout";
import { ReplayActions } from "../features/replays/ReplayActions";
import { ReplayProgress, tookText } from "../features/replays/ReplayProgress";
import { oneReplay, type Replay } from "../features/replays/replays";

/** One replay run: its progress, its actions, and what it sends. */
export function ReplayPage() {
  const zone = useZone();
  const id = numberIn(useParams().replay ?? "");
  return id === undefined ? <Missing /> : <Found key={id} zone={zone} id={id} />;
}

function Found({ zone, id }: { zone: string; id: number }) {
  const { data, error, isError, refetch } = useQuery(oneReplay(zone, id));
  const back = { to: pathIn(zone, "replays"), label: "Replays" };
  if (data === undefined && isAbsent(error)) return <Absent title={`Replay ${id}`} kind="replay" zone={zone} back={back} />;
  return (
    <>
      <PageHeader
        title={`Replay ${id}`}
        back={back}
        about={data === undefined ? "…" : <About replay={data.replay} />}
        badges={data !== undefined && <State state={data.replay.state} />}
      >
        {data !== undefined && <ReplayActions zone={zone} replay={data.replay} />}
      </PageHeader>
      <Stack gap="md">
        {isError && data === undefined && <ProblemAlert error={error} onRetry={() => void refetch()} />}
        {data === undefined && !isError && <Loading h={420} />}
        {data !== undefined && (
          <>
            <Failure replay={data.replay} />
            <ReplayProgress followed={data} />
            <ReplayAbout zone={zone} replay={data.replay} />
          </>
        )}
      </Stack>
    </>
  );
}

function About({ replay }: { replay: Replay }) {
  return (
    <>
      Requested by {replay.requested_by}, <Moment at={replay.requested_at} />
      {replay.ended_at !== null && `. ${tookText(replay)}`}.
    </>
  );
}

function Failure({ replay: { state, reason, detail } }: { replay: Replay }) {
  if (state !== "failed") return null;
  return (
    <Alert color="red" variant="light" icon={<IconAlertCircle />} role="alert" title="The run failed">
      <Text size="sm">{detail} What it had sent stays sent.</Text>
      {reason !== "" && (
        <Text size="xs" c="dimmed" className="mono">
          {reason}
        </Text>
      )}
    </Alert>
  );
}
