import { Paper, Select, TextInput } from "@mantine/core";
import { useState } from "react";

import { errorAt } from "../api/problem";
import { useZone } from "../api/zone";
import { type Column, DataTable } from "../parts/DataTable";
import { Empty } from "../parts/Empty";
import { Form } from "../parts/Form";
import { Loading } from "../parts/Loading";
import { New } from "../parts/New";
import { PageHeader } from "../parts/PageHeader";
import { ProblemAlert } from "../parts/ProblemAlert";
import { ChannelDeletion } from "../features/channels/ChannelDeletion";
import { type Channel, freeBits, useChannels, useDefineChannel } from "../features/channels/channels";

const COLUMNS = (zone: string): Column<Channel>[] => [
  { title: "Channel", cell: ({ name }) => <b>{name}</b> },
  { title: "Bit", right: true, cell: ({ bit }) => bit },
  { title: "Mask", right: true, cell: ({ mask }) => <span className="mono">{mask}</span> },
  { title: "Deletion", right: true, cell: (channel) => <ChannelDeletion zone={zone} channel={channel} /> },
];

export function ChannelsPage() {
  const zone = useZone();
  const channels = useChannels(zone);
  const named = channels.data?.filter(({ name }) => name !== "default") ?? [];
  return (
    <>
      <PageHeader title="Channels" about="Up to 64 named bits that events carry and listeners filter by.">
        <New label="New channel">{(made) => <NewChannel zone={zone} channels={channels.data ?? []} onMade={made} />}</New>
      </PageHeader>
      {channels.isError && <ProblemAlert error={channels.error} onRetry={() => void channels.refetch()} />}
      {channels.isPending && <Loading h={240} />}
      {channels.data !== undefined && named.length > 0 && (
        <Paper withBorder bg="var(--card)">
          <DataTable label="Channels" items={channels.data} columns={COLUMNS(zone)} keyOf={({ name }) => name} minWidth={360} />
        </Paper>
      )}
      {channels.data !== undefined && named.length === 0 && (
        <Empty
          title="No named channels"
          about="A channel is one of 64 bits of an event's mask. An event without channels is on the channel default. Name a bit, emit events on it, and listen to it only:"
          command={`curl -X PUT ${location.origin}/v1/channels/alarms -H "Authorization: Bearer $KEY" --json '{"mask": "1"}'
curl ${location.origin}/v1/streams/orders/events -H "Authorization: Bearer $KEY" \\
     --json '{"domain": "shop", "type": "order.failed", "channels": ["alarms"]}'`}
        />
      )}
    </>
  );
}

function NewChannel({ zone, channels, onMade }: { zone: string; channels: Channel[]; onMade: () => void }) {
  const define = useDefineChannel(zone);
  const free = freeBits(channels);
  const [name, setName] = useState("");
  const [bit, setBit] = useState(free[0]);
  const submit = () => {
    if (bit !== undefined) define.mutate({ name, bit }, { onSuccess: () => onMade() });
  };
  return (
    <Form
      fields={["channel", "mask"]}
      error={define.error}
      busy={define.isPending}
      action="Define"
      ready={name !== "" && bit !== undefined}
      onSubmit={submit}
    >
      <TextInput
        label="Name"
        placeholder="alarms"
        value={name}
        onChange={(event) => setName(event.currentTarget.value)}
        error={errorAt(define.error, "channel")}
        data-autofocus
      />
      <Select
        label="Bit"
        description="Its position in the mask. It cannot be changed later."
        data={free.map(String)}
        value={bit === undefined ? null : String(bit)}
        allowDeselect={false}
        onChange={(chosen) => setBit(Number(chosen))}
        error={errorAt(define.error, "mask")}
      />
    </Form>
  );
}
