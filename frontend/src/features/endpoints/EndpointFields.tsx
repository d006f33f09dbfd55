import { Select, TextInput } from "@mantine/core";

import { errorAt } from "../../api/problem";
import { DeliveryFields } from "./DeliveryFields";
import { FORMATS } from "./endpoints";
import type { FieldsProps } from "./fields";

/** The fields of a new endpoint and of a changed one. */
export function EndpointFields({ fields, error, onChange }: FieldsProps) {
  const { url, description, format } = fields;
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
      <DeliveryFields fields={fields} error={error} onChange={onChange} />
    </>
  );
}
