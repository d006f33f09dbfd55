import { Input, SegmentedControl, Stack, TextInput } from "@mantine/core";

import { EndpointSelect } from "../endpoints/EndpointSelect";

export type CallbackChoice =
  | { kind: "none" }
  | { kind: "endpoint"; endpoint: number | undefined }
  | { kind: "url"; url: string };

const KINDS = [
  { value: "none", label: "None" },
  { value: "endpoint", label: "Endpoint" },
  { value: "url", label: "New URL" },
];

interface Props {
  zone: string;
  client: string;
  choice: CallbackChoice;
  urls: boolean; // whether a new URL is allowed
  onChange: (choice: CallbackChoice) => void;
  error?: string;
}

/** The callback of a registration: none, an endpoint of the client, or a new URL. */
export function CallbackInput({ zone, client, choice, urls, onChange, error }: Props) {
  const choose = (kind: string) => {
    if (kind === "endpoint") onChange({ kind, endpoint: undefined });
    else onChange(kind === "url" ? { kind, url: "" } : { kind: "none" });
  };
  return (
    <Stack gap={6} role="group" aria-label="Callback">
      <Input.Label component="div">Callback</Input.Label>
      <Input.Description>Without one, the registration is for listens that name it.</Input.Description>
      <div>
        <SegmentedControl aria-label="Callback" data={urls ? KINDS : KINDS.slice(0, 2)} value={choice.kind} onChange={choose} />
      </div>
      {choice.kind === "endpoint" && (
        <EndpointSelect
          zone={zone}
          client={client}
          aria-label="Endpoint"
          placeholder="Choose an endpoint of the client"
          value={choice.endpoint}
          onChange={(endpoint) => onChange({ kind: "endpoint", endpoint })}
          error={error}
        />
      )}
      {choice.kind === "url" && (
        <TextInput
          aria-label="Callback URL"
          placeholder="https://example.org/hook"
          type="url"
          value={choice.url}
          onChange={(event) => onChange({ kind: "url", url: event.currentTarget.value })}
          error={error}
        />
      )}
      {choice.kind === "none" && error !== undefined && <Input.Error>{error}</Input.Error>}
    </Stack>
  );
}
