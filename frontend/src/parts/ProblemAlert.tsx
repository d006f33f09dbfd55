import { Alert, Button, Group, Text } from "@mantine/core";
import { IconAlertCircle } from "@tabler/icons-react";

import { Problem, textOf } from "../api/problem";

/** An error in place of the content, with a retry button. */
export function ProblemAlert({ error, onRetry }: { error: unknown; onRetry?: () => void }) {
  return (
    <Alert color="red" variant="light" icon={<IconAlertCircle />} role="alert">
      <Group justify="space-between" align="start">
        <div>
          <Text size="sm">{textOf(error)}</Text>
          {error instanceof Problem && (
            <Text size="xs" c="dimmed" className="mono">
              {error.status} {error.code}
            </Text>
          )}
        </div>
        {onRetry !== undefined && (
          <Button size="compact-sm" variant="default" onClick={onRetry}>
            Try again
          </Button>
        )}
      </Group>
    </Alert>
  );
}
