import { Select, Textarea, TextInput } from "@mantine/core";
import { useState } from "react";

import { errorAt } from "../../api/problem";
import { Form } from "../../parts/Form";
import { objectOf } from "../../parts/objectOf";
import { ClientInput } from "../clients/ClientInput";
import { StreamChoice } from "../jobs/StreamChoice";
import { KINDS, type NewConnector as Body, useCreateConnector } from "./connectors";

const NO_OBJECT = "This is not a JSON object.";

interface Props {
  zone: string;
  onMade: (id: number) => void;
}

/** Creates a connector. */
export function NewConnector({ zone, onMade }: Props) {
  const create = useCreateConnector(zone);
  const [client, setClient] = useState("");
  const [stream, setStream] = useState<string>();
  const [name, setName] = useState("");
  const [kind, setKind] = useState<Body["kind"]>("outbox-polling");
  const [url, setUrl] = useState("");
  const [settings, setSettings] = useState(KINDS[0]?.settings ?? "");
  const [mapping, setMapping] = useState("");
  const [checked, setChecked] = useState(false);
  const { error } = create;
  const submit = () => {
    setChecked(true);
    const [given, mapped] = [objectOf(settings), objectOf(mapping)];
    if (given === undefined || mapped === undefined || stream === undefined) return;
    const body: Body = { client, stream, name, kind, url, settings: given, mapping: mapped };
    create.mutate(body, { onSuccess: ({ id }) => onMade(id) });
  };
  return (
    <Form
      fields={["client", "stream", "name", "kind", "url"]}
      error={error}
      busy={create.isPending}
      action="Create"
      ready={client !== "" && stream !== undefined && name !== "" && url !== ""}
      onSubmit={submit}
    >
      <ClientInput zone={zone} value={client} onChange={setClient} error={errorAt(error, "client")} />
      <StreamChoice zone={zone} value={stream} onChange={setStream} error={error} />
      <TextInput
        label="Name"
        description="Unique among the client's connectors; the node of its events."
        placeholder="shop"
        value={name}
        onChange={(change) => setName(change.currentTarget.value)}
        error={errorAt(error, "name")}
      />
      <Select
        label="Kind"
        description="What it reads, and how."
        data={KINDS.map(({ value, label }) => ({ value, label }))}
        value={kind}
        allowDeselect={false}
        onChange={(chosen) => {
          const found = KINDS.find(({ value }) => value === chosen) ?? KINDS[0];
          if (found === undefined) return;
          setKind(found.value);
          setSettings(found.settings);
        }}
        error={errorAt(error, "kind")}
      />
      <TextInput
        label="URL"
        description="Of the system, with user and password. It is not shown again."
        placeholder={KINDS.find(({ value }) => value === kind)?.url}
        autoComplete="off"
        spellCheck={false}
        value={url}
        onChange={(change) => setUrl(change.currentTarget.value)}
        error={errorAt(error, "url")}
      />
      <Textarea
        label="Settings"
        description="Of the kind, as JSON."
        value={settings}
        onChange={(change) => setSettings(change.currentTarget.value)}
        autosize
        minRows={2}
        error={checked && objectOf(settings) === undefined ? NO_OBJECT : undefined}
      />
      <Textarea
        label="Map"
        description="Where fields come from, as JSON. Empty: as usual for the kind."
        value={mapping}
        onChange={(change) => setMapping(change.currentTarget.value)}
        autosize
        minRows={2}
        error={checked && objectOf(mapping) === undefined ? NO_OBJECT : undefined}
      />
    </Form>
  );
}
