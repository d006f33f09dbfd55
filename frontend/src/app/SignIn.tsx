import { Alert, Anchor, Button, Code, Paper, PasswordInput, Stack, Text, TextInput, Title } from "@mantine/core";
import { IconAlertCircle } from "@tabler/icons-react";
import { type SubmitEvent, useState } from "react";

import { textOf } from "../api/problem";
import { useSetUp, useSignIn } from "../api/session";
import { Brand } from "./Brand";
import classes from "./SignIn.module.css";

/** The sign-in page; with a set-up token an operator sets its password here. */
export function SignIn() {
  const signIn = useSignIn();
  const setUp = useSetUp();
  const [withToken, setWithToken] = useState(false);
  const [username, setUsername] = useState("");
  const [password, setPassword] = useState("");
  const [token, setToken] = useState("");
  const { isError, isPending, error } = withToken ? setUp : signIn;

  const submit = (event: SubmitEvent) => {
    event.preventDefault();
    if (withToken) setUp.mutate({ username, setup_token: token, password });
    else signIn.mutate({ username, password });
  };

  return (
    <main className={classes.page}>
      <Stack w="100%" maw={380} gap="lg">
        <Brand />
        <Paper component="form" withBorder p="xl" bg="var(--card)" onSubmit={submit} noValidate>
          <Stack gap="md">
            <div>
              <Title order={1}>{withToken ? "Set a password" : "Sign in"}</Title>
              <Text c="dimmed" size="sm">
                For operators of this hub.
              </Text>
            </div>
            {isError && (
              <Alert color="red" variant="light" icon={<IconAlertCircle />} role="alert">
                {textOf(error)}
              </Alert>
            )}
            <TextInput
              label="Username"
              autoComplete="username"
              autoFocus
              required
              withAsterisk={false}
              value={username}
              onChange={(event) => setUsername(event.currentTarget.value)}
            />
            {withToken && (
              <TextInput
                label="Set-up token"
                description="An admin gave it to you; it is valid once."
                autoComplete="one-time-code"
                required
                withAsterisk={false}
                value={token}
                onChange={(event) => setToken(event.currentTarget.value.trim())}
              />
            )}
            <PasswordInput
              label={withToken ? "New password" : "Password"}
              autoComplete={withToken ? "new-password" : "current-password"}
              required
              withAsterisk={false}
              value={password}
              onChange={(event) => setPassword(event.currentTarget.value)}
              visibilityToggleButtonProps={{ "aria-label": "Show the password", tabIndex: 0 }}
            />
            <Button type="submit" loading={isPending} disabled={username === "" || password === "" || (withToken && token === "")}>
              {withToken ? "Set the password" : "Sign in"}
            </Button>
            <Anchor component="button" type="button" size="sm" onClick={() => setWithToken(!withToken)}>
              {withToken ? "Sign in with a password" : "Use a set-up token"}
            </Anchor>
          </Stack>
        </Paper>
        <Stack gap="xs">
          <Text size="sm" c="dimmed">
            A hub started by <Code>make run</Code>: the username and the password are in the file{" "}
            <Code>credentials.json</Code> of its data folder, <Code>var</Code> by default. The hub's banner
            shows the path.
          </Text>
          <Text size="sm" c="dimmed">
            Any other hub: <Code>manage.py createoperator NAME</Code> creates an operator,{" "}
            <Code>manage.py changepassword NAME</Code> sets a new password.
          </Text>
        </Stack>
      </Stack>
    </main>
  );
}
