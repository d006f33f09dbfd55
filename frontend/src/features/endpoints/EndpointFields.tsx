import { Select, Switch, TextInput } from "@mantine/core";

import { errorAt } from "../../api/problem";
import { type EndpointChange, FORMATS } from "./endpoints";

export type Fields = Required<Pick<EndpointChange, "url" | "description" | "ordered" | "format">>;

export const NEW_FIELDS: Fields = { url: "", description: "", ordered: false, format: "native" };
export const FIELD_NAMES = ["url", "description", "ordered", "format"] as const;

interface Props {
  fields: Fields;
  error: unknown;
  onChange: (change: Partial<Fields>) => void;
}

/** The fields of a new endpoint and of a changed one. */
export function EndpointFields({ fields: { url, description, ordered, format }, error, onChange }: Props) {
  return (
    <>
      <TextInput
        label="URL"
        type="url"
        placeholder="https://example.org/hook"
        value={url}
        onChange={(event) => onChange({ url: event.currentTarget.value })}
        error={errorAt(error, "url")}
      />
      <TextInput
        label="Description"
        value={description}
        onChange={(event) => onChange({ description: event.currentTarget.value })}
        error={errorAt(error, "description")}
      />
      <Select
        label="Format"
        description="Encoding of the event in the request."
        data={[...FORMATS]}
        value={format}
        allowDeselect={false}
        onChange={(chosen) => onChange({ format: chosen ?? "native" })}
        error={errorAt(error, "format")}
      />
      <Switch
        label="In order"
        description="One event of a stream at a time; a retry delays the following ones."
        checked={ordered}
        onChange={(event) => onChange({ ordered: event.currentTarget.checked })}
      />
    </>
  );
}
