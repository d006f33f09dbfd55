import { Stack, Text, Title } from "@mantine/core";
import { useQuery } from "@tanstack/react-query";

import { Block } from "../../parts/Block";
import type { Column } from "../../parts/DataTable";
import { Empty } from "../../parts/Empty";
import { Json } from "../../parts/Json";
import { Listed } from "../../parts/Listed";
import { Loading } from "../../parts/Loading";
import { Moment } from "../../parts/Moment";
import { ProblemAlert } from "../../parts/ProblemAlert";
import { State } from "../../parts/State";
import { oneSample, type Sample, useSamples } from "./sources";

const LABELS: Record<Sample["outcome"], [string, string]> = {
  stored: ["ok", "stored"],
  repeated: ["done", "stored before"],
  answered: ["done", "challenge"],
  failed: ["failed", "not stored"],
  refused: ["failed", "not verified"],
};
const COLUMNS: Column<Sample>[] = [
  { title: "Received", cell: ({ received_at: at }) => <Moment at={at} /> },
  { title: "Outcome", cell: ({ outcome }) => <State state={LABELS[outcome][0]} label={LABELS[outcome][1]} /> },
  { title: "Reason", cell: ({ reason }) => reason || "–" },
  { title: "Address", cell: ({ address }) => address },
];

interface Props {
  zone: string;
  id: number;
  shown: number | undefined;
  onShow: (sample: number) => void;
}

/** The last requests to a source, verified and refused ones. */
export function Samples({ zone, id, shown, onShow }: Props) {
  return (
    <section>
      <Title order={2} mb="xs">
        Last requests
      </Title>
      <Listed
        list={useSamples(zone, id)}
        label="Last requests"
        columns={COLUMNS}
        keyOf={(one) => String(one.id)}
        nameOf={(one) => `Request ${one.id}`}
        onOpen={(one) => onShow(one.id)}
        minWidth={520}
        empty={<Empty title="No requests" about="The last 20 verified and the last 20 refused requests are shown here." />}
      />
      {shown !== undefined && <One zone={zone} id={id} sample={shown} />}
    </section>
  );
}

function One({ zone, id, sample }: { zone: string; id: number; sample: number }) {
  const { data, error, isError } = useQuery(oneSample(zone, id, sample));
  if (isError) return <ProblemAlert error={error} />;
  if (data === undefined) return <Loading h={120} />;
  return (
    <Stack gap="xs" mt="md">
      <Title order={3}>Request {data.id}</Title>
      {data.detail !== "" && <Text size="sm">{data.detail}</Text>}
      <Json value={data.headers} label="headers" />
      {data.body !== null && (
        <Block text={data.body} label="body" copy="Copy body" wraps>
          {data.body}
        </Block>
      )}
    </Stack>
  );
}
