import { Button, Group, Stack, Title } from "@mantine/core";
import { IconPlayerPause, IconPlayerPlay, IconRotate2 } from "@tabler/icons-react";
import { useQuery } from "@tanstack/react-query";
import { useState } from "react";

import { Facts } from "../../parts/Facts";
import { Loading } from "../../parts/Loading";
import { May } from "../../parts/May";
import { Moment } from "../../parts/Moment";
import { ProblemAlert } from "../../parts/ProblemAlert";
import { Removal } from "../../parts/Removal";
import { type Secret, SecretOnce } from "../../parts/SecretOnce";
import { whole } from "../../parts/text";
import { ReplaceSecret } from "./ReplaceSecret";
import { Samples } from "./Samples";
import { oneSource, shownUrl, type Source, useChangeSource, useDeleteSource, useReplaceUrl } from "./sources";
import { SourceState } from "./SourceState";
import { TestBench } from "./TestBench";

const OVERLAP_S = 86_400;

interface Props {
  zone: string;
  id: number;
  onDeleted: () => void;
}

/** One source: its numbers, its last requests, its map and its actions. */
export function SourceDetail({ zone, id, onDeleted }: Props) {
  const { data, error, isError, refetch } = useQuery(oneSource(zone, id));
  const [sample, setSample] = useState<number>();
  if (isError) return <ProblemAlert error={error} onRetry={() => void refetch()} />;
  if (data === undefined) return <Loading h={260} />;
  return (
    <Stack gap="lg">
      <About source={data} />
      <Actions zone={zone} source={data} onDeleted={onDeleted} />
      <Samples zone={zone} id={id} shown={sample} onShow={setSample} />
      <section>
        <Title order={2} mb="xs">
          Map
        </Title>
        <TestBench key={JSON.stringify(data.mapping)} zone={zone} source={data} sample={sample} />
      </section>
    </Stack>
  );
}

function Actions({ zone, source, onDeleted }: { zone: string; source: Source; onDeleted: () => void }) {
  const change = useChangeSource(zone, source.id);
  const replace = useReplaceUrl(zone, source.id);
  const remove = useDeleteSource(zone, source.id);
  const [made, setMade] = useState<Secret>();
  const Icon = source.enabled ? IconPlayerPause : IconPlayerPlay;
  return (
    <May>
      {change.isError && <ProblemAlert error={change.error} />}
      {replace.isError && <ProblemAlert error={replace.error} />}
      <Group gap="xs">
        <Button
          variant="default"
          loading={change.isPending}
          leftSection={<Icon size={16} />}
          onClick={() => change.mutate({ enabled: !source.enabled })}
        >
          {source.enabled ? "Disable" : "Enable"}
        </Button>
        <Button
          variant="default"
          loading={replace.isPending}
          leftSection={<IconRotate2 size={16} />}
          onClick={() => replace.mutate(OVERLAP_S, { onSuccess: ({ path }) => setMade(shownUrl(path)) })}
        >
          Replace the URL
        </Button>
        <ReplaceSecret zone={zone} id={source.id} onMade={setMade} />
        <Removal
          title={`Delete the source ${source.name}?`}
          about="Its URL ends. Its events remain in the stream."
          removal={remove}
          onConfirm={() => remove.mutate(undefined, { onSuccess: onDeleted })}
        />
      </Group>
      <SecretOnce secret={made} onClose={() => setMade(undefined)} />
    </May>
  );
}

function About({ source: one }: { source: Source }) {
  const { stored, repeated, answered, failed, refused } = one.requests;
  const time = (at: string | null) => (at === null ? "–" : <Moment at={at} />);
  return (
    <Facts
      facts={[
        ["State", <SourceState key="state" enabled={one.enabled} />],
        ["Name", one.name],
        ["Client", one.client],
        ["Stream", one.stream],
        ["Provider", one.provider],
        ["Stored", whole(stored)],
        ["Stored before", whole(repeated)],
        ["Challenges", whole(answered)],
        ["Not stored", whole(failed)],
        ["Not verified", whole(refused)],
        ["Last verified", time(one.verified_at)],
        ["Last refused", time(one.refused_at)],
        ["Previous URL valid until", time(one.former_url_expires_at)],
        ["Previous secret valid until", time(one.former_secret_expires_at)],
        ["Created", <Moment key="created" at={one.created_at} />],
      ]}
    />
  );
}
