import { PasswordInput, Switch, Textarea, TextInput } from "@mantine/core";
import { useState } from "react";

import { errorAt } from "../../api/problem";
import { Form } from "../../parts/Form";
import { objectOf } from "../../parts/objectOf";
import { ClientInput } from "../clients/ClientInput";
import { useCreateEndpoint } from "./endpoints";
import { authenticationOfSink, type SinkKind, SINKS } from "./sinks";

interface Props {
  zone: string;
  kind: SinkKind;
  onMade: () => void;
}

/** The form of a new endpoint whose events are stored. A worker checks it before the first event. */
export function NewSink({ zone, kind, onMade }: Props) {
  const form = SINKS[kind];
  const create = useCreateEndpoint(zone);
  const [client, setClient] = useState("");
  const [url, setUrl] = useState("");
  const [settings, setSettings] = useState(form.settings);
  const [user, setUser] = useState("");
  const [secret, setSecret] = useState("");
  const [ordered, setOrdered] = useState(form.ordered);
  const { error } = create;
  const given = objectOf(settings);
  const submit = () => {
    if (given === undefined) return;
    const authentication = authenticationOfSink(kind, user, secret);
    const fixed = { description: "", format: "native", handshake: "check" } as const;
    create.mutate({ ...fixed, client, kind, url, settings: given, ordered, authentication }, { onSuccess: onMade });
  };
  return (
    <Form
      fields={["client", "url", "settings", "authentication"]}
      error={error}
      busy={create.isPending}
      action="Create"
      ready={client !== "" && url !== "" && (user !== "" || form.isOpen === true) && given !== undefined}
      onSubmit={submit}
    >
      <ClientInput zone={zone} value={client} onChange={setClient} error={errorAt(error, "client")} />
      <TextInput
        label="URL"
        description={form.about}
        placeholder={form.url}
        autoComplete="off"
        spellCheck={false}
        value={url}
        onChange={(change) => setUrl(change.currentTarget.value)}
        error={errorAt(error, "url")}
      />
      <TextInput
        label={form.user}
        autoComplete="off"
        spellCheck={false}
        value={user}
        onChange={(change) => setUser(change.currentTarget.value)}
        error={errorAt(error, "authentication")}
      />
      <PasswordInput
        label={form.secret}
        description="It is stored encrypted and not shown again."
        autoComplete="new-password"
        value={secret}
        onChange={(change) => setSecret(change.currentTarget.value)}
      />
      <Textarea
        label="Settings"
        description="Of the kind, as JSON."
        styles={{ input: { fontFamily: "var(--mantine-font-family-monospace)" } }}
        value={settings}
        onChange={(change) => setSettings(change.currentTarget.value)}
        autosize
        minRows={3}
        error={given === undefined ? "This is not a JSON object." : errorAt(error, "settings")}
      />
      <Switch
        label="In order"
        description="Events of a stream are stored one after the other; a retry delays the following ones."
        checked={ordered}
        onChange={(change) => setOrdered(change.currentTarget.checked)}
      />
    </Form>
  );
}
