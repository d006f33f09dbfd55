import { Button, Stack, Text } from "@mantine/core";
import { useQuery } from "@tanstack/react-query";
import { useState } from "react";
import { useSearchParams } from "react-router";

import { ProblemAlert } from "../../parts/ProblemAlert";
import { JobForm } from "../jobs/JobForm";
import { StreamChoice } from "../jobs/StreamChoice";
import { Loading } from "../../parts/Loading";
import { Undisturbed } from "../../parts/Undisturbed";
import { changeOf, policyOf } from "../streams/policy";
import { RetentionFields } from "../streams/PolicyFields";
import { oneStream, type Stream } from "../streams/streams";

/** The form of a plan with the present policies, or with a proposed one of a stream. */
export function RetentionForm({ zone }: { zone: string }) {
  const [search] = useSearchParams();
  const [trying, setTrying] = useState(search.has("stream"));
  return (
    <Stack gap="md">
      <JobForm
        zone={zone}
        job="retention"
        about="Plans which segments of all streams would be dropped, compacted, archived and retained by their policies. The plan changes nothing until it is applied."
        fields={[]}
        params={{}}
        action="Plan with the present policies"
      >
        {() => null}
      </JobForm>
      {trying ? <Dry zone={zone} first={search.get("stream") ?? undefined} /> : <div><Button variant="default" onClick={() => setTrying(true)}>Propose another policy</Button></div>}
    </Stack>
  );
}

function Dry({ zone, first }: { zone: string; first: string | undefined }) {
  const [stream, setStream] = useState(first);
  const { data, error, isError, refetch } = useQuery({ ...oneStream(zone, stream ?? ""), enabled: stream !== undefined });
  return (
    <Stack gap="md" component="section" aria-label="Proposed policy">
      <Stack maw={420}>
        <StreamChoice zone={zone} value={stream} onChange={setStream} error={undefined} />
      </Stack>
      {isError && <ProblemAlert error={error} onRetry={() => void refetch()} />}
      {stream !== undefined && data === undefined && !isError && <Loading h={280} />}
      {data !== undefined && (
        <Undisturbed key={data.value.name} found={data} reload={refetch}>
          {({ value }) => <Fields zone={zone} stream={value} />}
        </Undisturbed>
      )}
    </Stack>
  );
}

function Fields({ zone, stream }: { zone: string; stream: Stream }) {
  const before = policyOf(stream);
  const [policy, setPolicy] = useState(before);
  const change = changeOf(before, policy);
  const isChanged = Object.keys(change).length > 0;
  if (stream.durability === "transient") {
    return <Text size="sm" c="dimmed">A transient stream is in memory alone; there is nothing to plan.</Text>;
  }
  return (
    <JobForm
      zone={zone}
      job="retention"
      about={`Plans the actions on ${stream.name} under this policy. The stored policy does not change.`}
      fields={Object.keys(policy)}
      params={isChanged ? { zone, policies: { [stream.name]: change } } : undefined}
      action="Plan with this policy"
    >
      {(error) => <RetentionFields policy={policy} error={error} onChange={(part) => setPolicy({ ...policy, ...part })} />}
    </JobForm>
  );
}
