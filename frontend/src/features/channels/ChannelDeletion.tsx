import { Button, Group, Text } from "@mantine/core";
import { useMutation, useQueryClient } from "@tanstack/react-query";

import { api, done } from "../../api/client";
import { Moment } from "../../parts/Moment";
import { ScheduleDeletion } from "../../parts/ScheduleDeletion";
import type { Channel } from "./channels";
import { May } from "../../parts/May";

const ABOUT =
  "Until then nothing changes. Afterwards no event and no listener can name it; stored events keep their bit, which no other channel of this zone gets.";

/** Deletes a channel, or shows when it ends with the button that withdraws that. */
export function ChannelDeletion({ zone, channel }: { zone: string; channel: Channel }) {
  const queries = useQueryClient();
  const onSuccess = () => queries.invalidateQueries({ queryKey: ["channels", zone] });
  const params = { path: { channel: channel.name }, query: { zone } };
  const removal = useMutation({
    mutationFn: (grace_s: number) => done(api.DELETE("/v1/channels/{channel}", { params: { ...params, query: { zone, grace_s } } })),
    onSuccess,
  });
  const restoring = useMutation({
    mutationFn: () => done(api.POST("/v1/channels/{channel}/restore", { params })),
    onSuccess,
  });
  if (channel.name === "default") return null;
  if (channel.deletes_at === null) {
    return <ScheduleDeletion compact noun="channel" name={channel.name} about={ABOUT} removal={removal} onConfirm={removal.mutateAsync} />;
  }
  return (
    <Group gap="sm" justify="end" wrap="nowrap">
      <Text size="sm" c="dimmed">
        Ends <Moment at={channel.deletes_at} />
      </Text>
      <May>
        <Button variant="default" size="compact-sm" loading={restoring.isPending} onClick={() => restoring.mutate()} aria-label={`Undo the deletion of ${channel.name}`}>
          Undo
        </Button>
      </May>
    </Group>
  );
}
