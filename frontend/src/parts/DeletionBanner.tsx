import { Alert, Button, Group, Text } from "@mantine/core";
import { IconClockX } from "@tabler/icons-react";
import type { ReactNode } from "react";

import { May } from "./May";
import { Moment } from "./Moment";
import { ProblemAlert } from "./ProblemAlert";

interface Props {
  noun: string; // "stream"
  deletesAt: string; // RFC 3339
  about: ReactNode; // what is refused until then
  restoring: { isPending: boolean; error: unknown };
  onRestore: () => void;
}

/** Shows that something is to be deleted, and when, with the button that withdraws the deletion. */
export function DeletionBanner({ noun, deletesAt, about, restoring, onRestore }: Props) {
  return (
    <Alert color="yellow" variant="light" icon={<IconClockX />} mb="md" title={`Deletion of the ${noun} scheduled`}>
      <Group justify="space-between" gap="md">
        <Text size="sm">
          Ends <Moment at={deletesAt} />. {about}
        </Text>
        <May>
          <Button variant="default" size="xs" loading={restoring.isPending} onClick={onRestore}>
            Undo
          </Button>
        </May>
      </Group>
      {restoring.error !== null && restoring.error !== undefined && <ProblemAlert error={restoring.error} />}
    </Alert>
  );
}
