import { Button, Group, Text } from "@mantine/core";
import { useDisclosure } from "@mantine/hooks";
import { IconPlayerPlay } from "@tabler/icons-react";

import { useApply } from "../jobs/jobs";
import type { Applied, OneRun, Outcome } from "../jobs/types";
import { Card } from "../parts/Card";
import { Confirm } from "../parts/Confirm";
import { type Column, DataTable } from "../parts/DataTable";
import { State } from "../parts/State";
import { bytes, whole } from "../parts/text";
import { type Plan, whyOf } from "./plan";

/** Does what the plan says, after a question; then what became of each segment. */
export function Apply({ run, plan }: { run: OneRun; plan: Plan }) {
  const [asking, { open, close }] = useDisclosure(false);
  const apply = useApply(run);
  const willDo = deeds(plan);
  if (willDo.length === 0) {
    return (
      <Text size="sm" c="dimmed">
        There is nothing to apply: every segment is kept.
      </Text>
    );
  }
  return (
    <>
      <Group gap="sm">
        <Button
          leftSection={<IconPlayerPlay size={16} />}
          onClick={() => {
            apply.reset();
            open();
          }}
        >
          Apply the plan
        </Button>
        <Text size="sm" c="dimmed" flex={1} miw={220}>
          Holds, cursors and the archive are looked at again at that moment; what they forbid by then is refused, and the rest is done.
        </Text>
      </Group>
      <Confirm
        opened={asking}
        title="Apply this plan?"
        about={<Question deeds={willDo} />}
        action="Apply the plan"
        busy={apply.isPending}
        error={apply.error}
        onConfirm={() => apply.mutate(undefined, { onSuccess: close })}
        onClose={close}
      />
      {apply.data !== undefined && <Outcomes applied={apply.data} />}
    </>
  );
}

function Question({ deeds }: { deeds: readonly string[] }) {
  return (
    <>
      <ul style={{ margin: "0 0 10px", paddingLeft: 18 }}>
        {deeds.map((deed) => (
          <li key={deed}>{deed}</li>
        ))}
      </ul>
      What is on hold at that moment, or still needed, is left alone.
    </>
  );
}

const COLUMNS: Column<Outcome>[] = [
  { title: "Stream", cell: ({ stream }) => stream },
  { title: "Sequences", right: true, cell: ({ first, last }) => `${whole(first)} to ${whole(last)}` },
  { title: "Planned", cell: ({ action }) => <State state={action} /> },
  { title: "Became", cell: ({ outcome }) => <State state={outcome} /> },
  { title: "Why", cell: ({ why }) => <span style={{ whiteSpace: "normal" }}>{why === "" ? "–" : whyOf(why)}</span>, width: 420 },
  { title: "Bytes", right: true, cell: ({ bytes: size }) => bytes(size) },
];

function Outcomes({ applied: { outcomes, done, refused, unchanged, left } }: { applied: Applied }) {
  const counts = [`${whole(done)} done`, `${whole(refused)} refused`, ...(unchanged > 0 ? [`${whole(unchanged)} were so already`] : [])];
  const said = counts.join(", ");
  return (
    <Card title="What was applied" aside={<Text size="sm" role="status" className="number">{said}</Text>}>
      {left > 0 && (
        <Text size="sm" px="md" pb="xs">
          {whole(left)} {left === 1 ? "segment is" : "segments are"} left, because one request may not take longer. Apply the plan again to go on.
        </Text>
      )}
      <DataTable label="What was applied" items={outcomes} columns={COLUMNS} keyOf={({ segment }) => segment} minWidth={820} />
    </Card>
  );
}

function deeds({ actions }: Plan): string[] {
  const said = (action: "drop" | "archive" | "compact", one: string, more: string) => {
    const { segments, bytes: size } = actions[action];
    return segments === 0 ? [] : [segments === 1 ? `1 segment (${bytes(size)}) ${one}` : `${whole(segments)} segments (${bytes(size)}) ${more}`];
  };
  return [
    ...said("drop", "is dropped from the database. Unless it is in the archive, its events are gone for good.", "are dropped from the database. The events of those that are not in the archive are gone for good."),
    ...said("archive", "goes to the archive next.", "go to the archive next."),
    ...said("compact", "is copied out of a partition that is mostly gone.", "are copied out of partitions that are mostly gone."),
  ];
}
