import { Select, Switch, TextInput } from "@mantine/core";
import { type ReactNode, useState } from "react";

import { errorAt } from "../../api/problem";
import { Form } from "../../parts/Form";
import { type Endpoint, type EndpointChange, FORMATS } from "./endpoints";

type Body = Required<Pick<EndpointChange, "url" | "description" | "ordered" | "format">>;

interface Props {
  endpoint?: Endpoint; // to change it
  error: unknown;
  busy: boolean;
  action: string;
  ready?: boolean;
  onSubmit: (body: Body) => void;
  onReload?: () => void;
  aside?: ReactNode;
  children?: ReactNode; // whose it is, of a new one
  fields?: readonly string[];
}

/** What an endpoint is like, for a new one and for a change. */
export function EndpointForm({ endpoint, error, children, fields = [], onSubmit, ...form }: Props) {
  const [url, setUrl] = useState(endpoint?.url ?? "");
  const [description, setDescription] = useState(endpoint?.description ?? "");
  const [ordered, setOrdered] = useState(endpoint?.ordered ?? false);
  const [format, setFormat] = useState(endpoint?.format ?? "native");
  return (
    <Form
      {...form}
      error={error}
      fields={["url", "description", "format", ...fields]}
      onSubmit={() => onSubmit({ url, description, ordered, format })}
    >
      {children}
      <TextInput
        label="URL"
        type="url"
        placeholder="https://example.org/hook"
        value={url}
        onChange={(event) => setUrl(event.currentTarget.value)}
        error={errorAt(error, "url")}
      />
      <TextInput
        label="Description"
        value={description}
        onChange={(event) => setDescription(event.currentTarget.value)}
        error={errorAt(error, "description")}
      />
      <Select
        label="Format"
        description="How each event is written into the request."
        data={[...FORMATS]}
        value={format}
        allowDeselect={false}
        onChange={(chosen) => setFormat(chosen ?? "native")}
        error={errorAt(error, "format")}
      />
      <Switch
        label="In order"
        description="One event of a stream at a time; a retry holds the next ones back."
        checked={ordered}
        onChange={(event) => setOrdered(event.currentTarget.checked)}
      />
    </Form>
  );
}
