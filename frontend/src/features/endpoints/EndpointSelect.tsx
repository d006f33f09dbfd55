import { Select, type SelectProps } from "@mantine/core";

import { useEndpointChoice } from "./endpoints";

interface Props extends Pick<SelectProps, "placeholder" | "w" | "error" | "label"> {
  "aria-label"?: string;
  zone: string;
  client?: string; // only this one's
  value: number | undefined;
  onChange: (endpoint: number | undefined) => void;
}

export function EndpointSelect({ zone, client, value, onChange, ...more }: Props) {
  const endpoints = useEndpointChoice(zone, client);
  const data = endpoints.data?.items.map((endpoint) => ({ value: String(endpoint.id), label: `${endpoint.id} · ${endpoint.url}` }));
  return (
    <Select
      {...more}
      data={data ?? []}
      value={value === undefined ? null : String(value)}
      onChange={(chosen) => onChange(chosen === null ? undefined : Number(chosen))}
      clearable
      searchable
      nothingFoundMessage={client === undefined ? "No endpoints." : "This client has no endpoint."}
    />
  );
}
