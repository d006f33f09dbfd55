import { MultiSelect, Select, TextInput } from "@mantine/core";
import { useState } from "react";

import { errorAt } from "../../api/problem";
import { Form } from "../../parts/Form";
import { ClientInput } from "../clients/ClientInput";
import { useStreamNames } from "../streams/streams";
import { useCreatePatternGroup } from "./patterns";

/** Creates an empty pattern group of a client. */
export function NewPatternGroup({ zone, onMade }: { zone: string; onMade: (id: number) => void }) {
  const create = useCreatePatternGroup(zone);
  const names = useStreamNames(zone).data ?? [];
  const [client, setClient] = useState("");
  const [name, setName] = useState("");
  const [streams, setStreams] = useState<string[]>([]);
  const [output, setOutput] = useState<string | null>(null);
  const body = { client, name, streams, ...(output !== null && { output_stream: output }) };
  return (
    <Form
      fields={["client", "name", "streams", "output_stream"]}
      error={create.error}
      busy={create.isPending}
      action="Create"
      ready={client !== "" && name !== "" && streams.length > 0}
      onSubmit={() => create.mutate(body, { onSuccess: ({ id }) => onMade(id) })}
    >
      <ClientInput zone={zone} value={client} onChange={setClient} error={errorAt(create.error, "client")} />
      <TextInput
        label="Name"
        description="Unique among the client's pattern groups."
        placeholder="security"
        value={name}
        onChange={(event) => setName(event.currentTarget.value)}
        error={errorAt(create.error, "name")}
      />
      <MultiSelect
        label="Streams"
        description="The patterns of the group see their events."
        data={names}
        value={streams}
        onChange={setStreams}
        searchable
        error={errorAt(create.error, "streams")}
      />
      <Select
        label="Output stream"
        description="By default the stream of the event that completed a match."
        data={names}
        value={output}
        onChange={setOutput}
        clearable
        searchable
        error={errorAt(create.error, "output_stream")}
      />
    </Form>
  );
}
