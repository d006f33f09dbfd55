import { PasswordInput, Text } from "@mantine/core";
import { useState } from "react";

import { errorAt } from "../api/problem";
import { useChangePassword } from "../api/session";
import { Form } from "../parts/Form";

const TOGGLE = { "aria-label": "Show the password", tabIndex: 0 };

/** Changes the password of the operator who is signed in. */
export function ChangePassword({ username, onChanged }: { username: string; onChanged: () => void }) {
  const change = useChangePassword();
  const [password, setPassword] = useState("");
  const [next, setNext] = useState("");
  return (
    <Form
      fields={["password", "new_password"]}
      error={change.error}
      busy={change.isPending}
      action="Change the password"
      role="viewer"
      ready={password !== "" && next !== ""}
      onSubmit={() => change.mutate({ password, new_password: next }, { onSuccess: onChanged })}
    >
      <Text size="sm" c="dimmed">
        All your other sessions end.
      </Text>
      <input type="text" name="username" autoComplete="username" value={username} readOnly hidden />
      <PasswordInput
        label="Present password"
        autoComplete="current-password"
        value={password}
        onChange={(event) => setPassword(event.currentTarget.value)}
        error={errorAt(change.error, "password")}
        visibilityToggleButtonProps={TOGGLE}
        data-autofocus
      />
      <PasswordInput
        label="New password"
        autoComplete="new-password"
        value={next}
        onChange={(event) => setNext(event.currentTarget.value)}
        error={errorAt(change.error, "new_password")}
        visibilityToggleButtonProps={TOGGLE}
      />
    </Form>
  );
}
