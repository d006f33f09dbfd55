import { Select, Textarea, TextInput } from "@mantine/core";
import { useState } from "react";

import { errorAt } from "../../api/problem";
import { Form } from "../../parts/Form";
import { objectOf } from "../../parts/objectOf";
import { SecretOnce } from "../../parts/SecretOnce";
import { ClientInput } from "../clients/ClientInput";
import { StreamChoice } from "../jobs/StreamChoice";
import { type NewSource as Body, PROVIDERS, urlOf, useCreateSource } from "./sources";

interface Props {
  zone: string;
  onMade: (id: number) => void;
}

/** Creates a source; its URL and its secret are shown once. */
export function NewSource({ zone, onMade }: Props) {
  const create = useCreateSource(zone);
  const [client, setClient] = useState("");
  const [stream, setStream] = useState<string>();
  const [name, setName] = useState("");
  const [provider, setProvider] = useState<Body["provider"]>("github");
  const [options, setOptions] = useState("");
  const [secret, setSecret] = useState("");
  const [malformed, setMalformed] = useState(false);
  const { error, data } = create;
  const example = PROVIDERS.find(({ value }) => value === provider)?.options ?? "";
  const submit = () => {
    const parsed = objectOf(options);
    setMalformed(parsed === undefined);
    if (parsed === undefined || stream === undefined) return;
    create.mutate({ client, stream, name, provider, options: parsed, ...(secret === "" ? {} : { secret }) });
  };
  return (
    <Form
      fields={["client", "stream", "name", "provider", "secret"]}
      error={error}
      busy={create.isPending}
      action="Create"
      ready={client !== "" && stream !== undefined && name !== ""}
      onSubmit={submit}
    >
      <ClientInput zone={zone} value={client} onChange={setClient} error={errorAt(error, "client")} />
      <StreamChoice zone={zone} value={stream} onChange={setStream} error={error} />
      <TextInput
        label="Name"
        description="Unique among the client's sources; the node of its events."
        placeholder="github"
        value={name}
        onChange={(change) => setName(change.currentTarget.value)}
        error={errorAt(error, "name")}
      />
      <Select
        label="Provider"
        description="How requests are verified, mapped and answered."
        data={PROVIDERS.map(({ value, label }) => ({ value, label }))}
        value={provider}
        allowDeselect={false}
        onChange={(chosen) => {
          const found = PROVIDERS.find(({ value }) => value === chosen) ?? PROVIDERS[0];
          if (found === undefined) return;
          setProvider(found.value);
          setOptions(found.options);
        }}
        error={errorAt(error, "provider")}
      />
      {example !== "" && (
        <Textarea
          label="Options"
          description="Of the verification, as JSON."
          value={options}
          onChange={(change) => setOptions(change.currentTarget.value)}
          autosize
          minRows={2}
          error={malformed ? "This is not a JSON object." : undefined}
        />
      )}
      <TextInput
        label="Secret"
        description="As the provider shows it. Empty: the hub generates one."
        autoComplete="off"
        spellCheck={false}
        value={secret}
        onChange={(change) => setSecret(change.currentTarget.value)}
        error={errorAt(error, "secret")}
      />
      <SecretOnce
        secret={
          data && {
            name: "URL and secret of the source",
            about: "Enter both at the provider.",
            text: `${urlOf(data.path)}\n${data.secret}`,
          }
        }
        onClose={() => data && onMade(data.id)}
      />
    </Form>
  );
}
