import { PasswordInput, Select, TextInput } from "@mantine/core";
import { type ReactNode, useState } from "react";

import { errorAt } from "../../api/problem";
import { Facts } from "../../parts/Facts";
import { authenticationOf, type Draft, draftOf, type Kind, KINDS, kindsOf, SECRETS } from "./authentication";
import type { Endpoint } from "./endpoints";
import { IsSet, None } from "./IsSet";
import { RemoveCredential } from "./RemoveCredential";
import { type Editing, type Found, Setting, SettingForm } from "./Setting";
import { isSink } from "./sinks";

const SECRET_LABELS: Record<Kind, string> = { basic: "Password", bearer: "Token", oauth2_client_credentials: "Client secret", access_key: "Secret access key" };
const PLACES = [
  { value: "basic", label: "in a header (Basic)" },
  { value: "body", label: "in the body" },
];

/** How callbacks authenticate. */
export function Authentication(endpoint: Found) {
  const { authentication, kind } = endpoint.found.value;
  return (
    <Setting
      {...endpoint}
      title="Authentication"
      about="How callbacks authenticate at the receiver, besides their signature. Secrets are not shown again."
      action={authentication === null ? "Set" : "Replace"}
      aside={authentication !== null && !isSink(kind) && <RemoveCredential {...endpoint} kind="authentication" name="authentication" />}
      form={AuthenticationForm}
    >
      {authentication === null ? <None /> : <Facts facts={factsOf(authentication)} />}
    </Setting>
  );
}

function factsOf(shown: NonNullable<Endpoint["authentication"]>): [string, ReactNode][] {
  const facts: [string, ReactNode | undefined][] = [
    ["Kind", KINDS.find((one) => one.value === shown.type)?.label ?? shown.type],
    ["User name", shown.username],
    ["Token URL", shown.token_url],
    ["Client id", shown.client_id],
    ["Access key id", shown.access_key_id],
    [SECRET_LABELS[shown.type], <IsSet key="set" digest={shown.digest} />],
    ["Scopes", shown.scopes?.join(" ")],
    ["Audience", shown.audience],
    ["Client secret is sent", PLACES.find((one) => one.value === shown.client_authentication)?.label],
  ];
  return facts.filter((fact): fact is [string, ReactNode] => fact[1] !== undefined);
}

function AuthenticationForm({ endpoint, ...form }: Editing) {
  const [draft, setDraft] = useState(() => draftOf(endpoint.authentication));
  const { error } = form.change;
  const change = (part: Partial<Draft>) => setDraft((latest) => ({ ...latest, ...part }));
  const secretError = errorAt(error, `authentication.${SECRETS[draft.type]}`);
  const replaced = endpoint.authentication?.type === draft.type;
  return (
    <SettingForm {...form} fields={["authentication"]} ready={draft.secret !== ""} body={() => ({ authentication: authenticationOf(draft) })}>
      <Select
        label="Kind"
        data={KINDS.filter(({ value }) => kindsOf(endpoint.kind).includes(value))}
        value={draft.type}
        allowDeselect={false}
        onChange={(type) => change({ type: type ?? draft.type, secret: "" })}
        error={errorOf(error, draft.type)}
      />
      {draft.type === "basic" && <Text name="username" label="User name" draft={draft} error={error} onChange={change} />}
      {draft.type === "access_key" && <Text name="access_key_id" label="Access key id" draft={draft} error={error} onChange={change} />}
      {draft.type === "oauth2_client_credentials" && (
        <>
          <Text name="token_url" label="Token URL" placeholder="https://example.org/oauth/token" draft={draft} error={error} onChange={change} />
          <Text name="client_id" label="Client id" draft={draft} error={error} onChange={change} />
        </>
      )}
      <PasswordInput
        label={SECRET_LABELS[draft.type]}
        description={replaced ? "Set. Enter it again, or a new one: it is stored with the other fields." : undefined}
        autoComplete="new-password"
        visibilityToggleButtonProps={{ "aria-label": `Show the ${SECRET_LABELS[draft.type].toLowerCase()}` }}
        value={draft.secret}
        onChange={(event) => change({ secret: event.currentTarget.value })}
        error={secretError}
        aria-invalid={secretError !== undefined}
      />
      {draft.type === "oauth2_client_credentials" && <OAuthFields draft={draft} error={error} onChange={change} />}
    </SettingForm>
  );
}

interface FieldProps {
  draft: Draft;
  error: unknown;
  onChange: (part: Partial<Draft>) => void;
}

function OAuthFields({ draft, error, onChange }: FieldProps) {
  return (
    <>
      <Text name="scopes" label="Scopes" about="Separated by spaces. Empty: none is requested." draft={draft} error={error} onChange={onChange} />
      <Text name="audience" label="Audience" about="Empty: none is requested." draft={draft} error={error} onChange={onChange} />
      <Select
        label="Client id and secret are sent"
        data={PLACES}
        value={draft.client_authentication}
        allowDeselect={false}
        onChange={(place) => onChange({ client_authentication: place === "body" ? "body" : "basic" })}
        error={errorAt(error, "authentication.client_authentication")}
      />
    </>
  );
}

interface TextProps extends FieldProps {
  name: "username" | "token_url" | "client_id" | "access_key_id" | "scopes" | "audience";
  label: string;
  about?: string;
  placeholder?: string;
}

function Text({ name, label, about, placeholder, draft, error, onChange }: TextProps) {
  return (
    <TextInput
      label={label}
      description={about}
      placeholder={placeholder}
      autoComplete="off"
      value={draft[name]}
      onChange={(event) => onChange({ [name]: event.currentTarget.value })}
      error={errorAt(error, `authentication.${name}`)}
    />
  );
}

/** The message for `authentication` itself, where no field of the kind shows it. */
function errorOf(error: unknown, type: Kind): string | undefined {
  const shown = ["username", "token_url", "client_id", "access_key_id", "scopes", "audience", "client_authentication", SECRETS[type]];
  if (shown.some((name) => errorAt(error, `authentication.${name}`) !== undefined)) return undefined;
  return errorAt(error, "authentication");
}
