import { Select, Switch, TextInput } from "@mantine/core";
import { type ReactNode, useState } from "react";

import { errorAt } from "../../api/problem";
import { Form } from "../../parts/Form";
import { type Endpoint, type EndpointChange, FORMATS, HANDSHAKES, SIGNATURES } from "./endpoints";

type Body = Required<
  Pick<EndpointChange, "url" | "description" | "ordered" | "format" | "signature" | "handshake">
>;

interface Props {
  endpoint?: Endpoint; // to change it
  error: unknown;
  busy: boolean;
  action: string;
  ready?: boolean;
  onSubmit: (body: Body) => void;
  onReload?: () => void;
  aside?: ReactNode;
  children?: ReactNode; // field for the client, in the form of a new one
  fields?: readonly string[];
}

/** The form of an endpoint. */
export function EndpointForm({ endpoint, error, children, fields = [], onSubmit, ...form }: Props) {
  const [url, setUrl] = useState(endpoint?.url ?? "");
  const [description, setDescription] = useState(endpoint?.description ?? "");
  const [ordered, setOrdered] = useState(endpoint?.ordered ?? false);
  const [format, setFormat] = useState(endpoint?.format ?? "native");
  const [signature, setSignature] = useState(endpoint?.signature ?? "v1");
  const [handshake, setHandshake] = useState(endpoint?.handshake ?? "none");
  return (
    <Form
      {...form}
      error={error}
      fields={["url", "description", "format", "signature", "handshake", ...fields]}
      onSubmit={() => onSubmit({ url, description, ordered, format, signature, handshake })}
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
        description="Encoding of the event in the request."
        data={[...FORMATS]}
        value={format}
        allowDeselect={false}
        onChange={(chosen) => setFormat(chosen ?? "native")}
        error={errorAt(error, "format")}
      />
      <Select
        label="Signature"
        description="Of each request, as Standard Webhooks specifies."
        data={[...SIGNATURES]}
        value={signature}
        allowDeselect={false}
        onChange={(chosen) => setSignature(chosen ?? "v1")}
        error={errorAt(error, "signature")}
      />
      <Select
        label="Handshake"
        description="How the receiver agrees to callbacks before the first one."
        data={[...HANDSHAKES]}
        value={handshake}
        allowDeselect={false}
        onChange={(chosen) => setHandshake(chosen ?? "none")}
        error={errorAt(error, "handshake")}
      />
      <Switch
        label="In order"
        description="One event of a stream at a time; a retry delays the following ones."
        checked={ordered}
        onChange={(event) => setOrdered(event.currentTarget.checked)}
      />
    </Form>
  );
}
