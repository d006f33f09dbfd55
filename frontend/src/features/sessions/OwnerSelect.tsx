import { Select, type SelectProps } from "@mantine/core";

import { type Owner, ownerOf, useOwners, valueOf } from "./owners";

interface Props extends Pick<SelectProps, "label" | "aria-label" | "description" | "placeholder" | "error" | "disabled" | "nothingFoundMessage" | "w"> {
  zone: string;
  client?: string; // only those of this client
  value: Owner;
  onChange: (owner: Owner) => void;
}

/** The choice of a consumer session or of a session group. */
export function OwnerSelect({ zone, client, value, onChange, ...input }: Props) {
  const owners = useOwners(zone, client).data;
  const named = (kind: string, found: readonly { name: string }[] | undefined, chosen: string | null) =>
    [...new Set([...(found ?? []).map(({ name }) => name), ...(chosen === null ? [] : [chosen])])].map((name) => ({ value: `${kind}:${name}`, label: name }));
  const data = [
    { group: "Sessions", items: named("session", owners?.sessions, value.session) },
    { group: "Session groups", items: named("session_group", owners?.groups, value.session_group) },
  ];
  return (
    <Select
      {...input}
      data={data.filter(({ items }) => items.length > 0)}
      value={valueOf(value)}
      onChange={(chosen) => onChange(ownerOf(chosen))}
      clearable
      searchable
    />
  );
}

/** The owner, beside the client, of a new registration or of a new group of registrations. */
export function OwnerInput({ zone, client, value, onChange, error }: Pick<Props, "zone" | "value" | "onChange" | "error"> & { client: string }) {
  return (
    <OwnerSelect
      zone={zone}
      client={client}
      label="Session or session group"
      description="Optional. Events are then delivered to that session, or to the members of the group. It cannot be changed later."
      placeholder="None: the client alone"
      nothingFoundMessage="The client has no consumer session"
      disabled={client === ""}
      value={value}
      onChange={onChange}
      error={error}
    />
  );
}
