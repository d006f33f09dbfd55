import { Button, Group, Paper, Stack, Text, Title } from "@mantine/core";
import { IconPlayerPlay } from "@tabler/icons-react";
import { type ReactNode, useState } from "react";
import { useNavigate } from "react-router";

import { pathIn } from "../../api/zone";
import { Form } from "../../parts/Form";
import { May } from "../../parts/May";
import { ProblemAlert } from "../../parts/ProblemAlert";
import { PreviewResult } from "./PreviewResult";
import { type NewReplay, usePreview, useStartReplay } from "./replays";

const FIELDS = [
  ...["endpoint", "streams", "from", "to", "registration", "version", "language", "filter", "domain", "type", "application"],
  ...["attributes", "states", "outcome", "status", "since", "until", "rate", "limit"],
];

interface Props {
  zone: string;
  about: string;
  asked: NewReplay | undefined; // undefined: the form is incomplete
  children: (error: unknown) => ReactNode;
}

/** A run is previewed, and then started as it was previewed: a changed field asks for another preview. */
export function ReplayForm({ zone, about, asked, children }: Props) {
  const [previewed, setPreviewed] = useState<string>();
  const preview = usePreview(zone);
  const start = useStartReplay(zone);
  const navigate = useNavigate();
  const current = asked !== undefined && previewed === JSON.stringify(asked);
  const error = preview.error ?? start.error;
  const look = () => {
    if (asked === undefined) return;
    start.reset();
    setPreviewed(JSON.stringify(asked));
    preview.mutate(asked);
  };
  return (
    <Stack gap="md" maw={860}>
      <Paper withBorder bg="var(--card)" p="lg">
        <Form fields={FIELDS} error={preview.error} busy={preview.isPending} action="Preview" role="viewer" ready={asked !== undefined} onSubmit={look}>
          <Text size="sm" c="dimmed">
            {about}
          </Text>
          {children(error)}
        </Form>
      </Paper>
      {current && preview.isSuccess && (
        <Stack gap="md" component="section" aria-label="Preview of the run">
          <Title order={2}>Preview</Title>
          <PreviewResult zone={zone} source={asked.source} preview={preview.data} />
          {start.isError && <ProblemAlert error={start.error} />}
          <May>
            <Group justify="end">
              <Button
                leftSection={<IconPlayerPlay size={16} />}
                loading={start.isPending}
                disabled={preview.data.exact && preview.data.deliveries === 0}
                onClick={() => start.mutate(asked, { onSuccess: ({ id }) => void navigate(pathIn(zone, `replays/${id}`)) })}
              >
                Start the run
              </Button>
            </Group>
          </May>
        </Stack>
      )}
    </Stack>
  );
}
