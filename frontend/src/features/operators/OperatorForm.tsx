import { Radio, Stack, TextInput } from "@mantine/core";
import { useState } from "react";

import { errorAt } from "../../api/problem";
import { ROLES, type Role } from "../../api/session";
import { Form } from "../../parts/Form";
import type { Secret } from "../../parts/SecretOnce";
import { capital } from "../../parts/text";
import { ABOUT, useCreateOperator } from "./operators";

/** Creates an operator, who sets its own password with the token that is shown. */
export function NewOperator({ onMade }: { onMade: (secret: Secret) => void }) {
  const create = useCreateOperator();
  const [name, setName] = useState("");
  const [role, setRole] = useState<Role>("viewer");
  return (
    <Form
      fields={["name", "role"]}
      error={create.error}
      busy={create.isPending}
      action="Create"
      role="admin"
      ready={name !== ""}
      onSubmit={() => create.mutate({ name, role }, { onSuccess: ({ setup_token: token }) => onMade(tokenOf(name, token ?? "")) })}
    >
      <TextInput
        label="Name"
        description="The username, which may be an e-mail address."
        placeholder="alice"
        value={name}
        onChange={(event) => setName(event.currentTarget.value)}
        error={errorAt(create.error, "name")}
        autoComplete="off"
        data-autofocus
      />
      <RoleInput value={role} onChange={setRole} />
    </Form>
  );
}

export function RoleInput({ value, onChange }: { value: Role; onChange: (role: Role) => void }) {
  return (
    <Radio.Group label="Role" value={value} onChange={(chosen) => onChange(ROLES.find((one) => one === chosen) ?? value)}>
      <Stack gap="xs" mt={6}>
        {ROLES.map((role) => (
          <Radio key={role} value={role} label={capital(role)} description={capital(ABOUT[role])} />
        ))}
      </Stack>
    </Radio.Group>
  );
}

export function tokenOf(name: string, text: string): Secret {
  return {
    name: `set-up token of ${name}`,
    about: `${name} sets a password with it once, within three days: "Use a set-up token" on the sign-in page.`,
    text,
  };
}
