import { Button, Group, Text } from "@mantine/core";
import { useDisclosure } from "@mantine/hooks";
import { IconPlayerPlay } from "@tabler/icons-react";

import { useApply } from "../jobs/jobs";
import type { Applied, OneRun, Outcome } from "../jobs/types";
import { Card } from "../../parts/Card";
import { Confirm } from "../../parts/Confirm";
import { type Column, DataTable } from "../../parts/DataTable";
import { May } from "../../parts/May";
import { State } from "../../parts/State";
import { bytes, whole } from "../../parts/text";
import { type Plan, reasonOf } from "./plan";

/** Applies the plan after a confirmation, and lists the outcome of each segment. */
export function Apply({ run, plan }: { run: OneRun; plan: Plan }) {
  const [asking, { open, close }] = useDisclosure(false);
  const apply = useApply(run);
  const actions = actionsOf(plan);
  if (actions.length === 0) {
    return (
      <Text size="sm" c="dimmed">
        Nothing to apply: the plan keeps every segment.
      </Text>
    );
  }
  return (
    <>
      <May>
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
            Holds, cursors and the archive are checked again. Actions that they forbid are refused; the others are carried out.
          </Text>
        </Group>
      </May>
      <Confirm
        opened={asking}
        title="Apply this plan?"
        about={<Question actions={actions} />}
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

function Question({ actions }: { actions: readonly string[] }) {
  return (
    <>
      <ul style={{ margin: "0 0 10px", paddingLeft: 18 }}>
        {actions.map((action) => (
          <li key={action}>{action}</li>
        ))}
      </ul>
      Segments with a hold, or needed by a cursor, are not touched.
    </>
  );
}

const COLUMNS: Column<Outcome>[] = [
  { title: "Stream", cell: ({ stream }) => stream },
  { title: "Sequences", right: true, cell: ({ first, last }) => `${whole(first)} to ${whole(last)}` },
  { title: "Planned", cell: ({ action }) => <State state={action} /> },
  { title: "Outcome", cell: ({ outcome }) => <State state={outcome} /> },
  { title: "Reason", cell: ({ reason }) => <span style={{ whiteSpace: "normal" }}>{reason === "" ? "–" : reasonOf(reason)}</span>, width: 420 },
  { title: "Bytes", right: true, cell: ({ bytes: size }) => bytes(size) },
];

function Outcomes({ applied: { outcomes, done, refused, unchanged, remaining } }: { applied: Applied }) {
  const counts = [`${whole(done)} done`, `${whole(refused)} refused`, ...(unchanged > 0 ? [`${whole(unchanged)} unchanged`] : [])];
  const said = counts.join(", ");
  return (
    <Card title="Outcomes" aside={<Text size="sm" role="status" className="number">{said}</Text>}>
      {remaining > 0 && (
        <Text size="sm" px="md" pb="xs">
          Remaining segments: {whole(remaining)}. The request reached its time limit; apply the plan again to continue.
        </Text>
      )}
      <DataTable label="Outcomes" items={outcomes} columns={COLUMNS} keyOf={({ segment }) => segment} minWidth={820} />
    </Card>
  );
}

function actionsOf({ actions }: Plan): string[] {
  const said = (action: "drop" | "archive" | "compact", one: string, more: string) => {
    const { segments, bytes: size } = actions[action];
    return segments === 0 ? [] : [segments === 1 ? `1 segment (${bytes(size)}) ${one}` : `${whole(segments)} segments (${bytes(size)}) ${more}`];
  };
  return [
    ...said("drop", "is dropped from the database. Unless it is archived, its events are lost.", "are dropped from the database. Events that are not archived are lost."),
    ...said("archive", "is archived next.", "are archived next."),
    ...said("compact", "is copied out of a partition that is mostly dropped.", "are copied out of partitions that are mostly dropped."),
  ];
}
