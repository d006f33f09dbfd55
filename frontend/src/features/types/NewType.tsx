import { SimpleGrid, TextInput } from "@mantine/core";
import { useState } from "react";

import { errorAt } from "../../api/problem";
import { Form } from "../../parts/Form";
import { DefinitionFields, type Draft, FIELDS } from "./DefinitionFields";
import type { TypeName } from "./types";
import { useDraft } from "./useDraft";

const FIRST: Draft = {
  schema: JSON.stringify({ type: "object", properties: { total: { type: "number", minimum: 0 } }, required: ["total"] }, null, 2),
  header: "",
  parent: "",
  evolution: "backward",
};

export function NewType({ zone, onMade }: { zone: string; onMade: (name: TypeName) => void }) {
  const [name, setName] = useState<TypeName>({ domain: "", type: "" });
  const { draft, edit, error, busy, declare } = useDraft(zone, FIRST);
  return (
    <Form
      fields={FIELDS}
      error={error}
      busy={busy}
      action="Declare"
      ready={name.domain !== "" && name.type !== ""}
      onSubmit={() => declare(name, () => onMade(name))}
    >
      <SimpleGrid cols={{ base: 1, xs: 2 }} spacing="sm">
        <TextInput
          label="Domain"
          placeholder="shop"
          value={name.domain}
          onChange={(event) => setName({ ...name, domain: event.currentTarget.value })}
          error={errorAt(error, "domain")}
          data-autofocus
        />
        <TextInput
          label="Type"
          placeholder="order.placed"
          value={name.type}
          onChange={(event) => setName({ ...name, type: event.currentTarget.value })}
          error={errorAt(error, "type")}
        />
      </SimpleGrid>
      <DefinitionFields draft={draft} error={error} onChange={edit} />
    </Form>
  );
}
