import { Alert, Button, Code, Paper, PasswordInput, Stack, Text, TextInput, Title } from "@mantine/core";
import { IconAlertCircle } from "@tabler/icons-react";
import { type SubmitEvent, useState } from "react";

import { textOf } from "../api/problem";
import { useSignIn } from "../api/session";
import { Brand } from "./Brand";
import classes from "./SignIn.module.css";

export function SignIn() {
  const signIn = useSignIn();
  const [username, setUsername] = useState("");
  const [password, setPassword] = useState("");

  const submit = (event: SubmitEvent) => {
    event.preventDefault();
    signIn.mutate({ username, password });
  };

  return (
    <main className={classes.page}>
      <Stack w="100%" maw={380} gap="lg">
        <Brand />
        <Paper component="form" withBorder p="xl" bg="var(--card)" onSubmit={submit} noValidate>
          <Stack gap="md">
            <div>
              <Title order={1}>Sign in</Title>
              <Text c="dimmed" size="sm">
                For operators of this hub.
              </Text>
            </div>
            {signIn.isError && (
              <Alert color="red" variant="light" icon={<IconAlertCircle />} role="alert">
                {textOf(signIn.error)}
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
            <PasswordInput
              label="Password"
              autoComplete="current-password"
              required
              withAsterisk={false}
              value={password}
              onChange={(event) => setPassword(event.currentTarget.value)}
              visibilityToggleButtonProps={{ "aria-label": "Show the password", tabIndex: 0 }}
            />
            <Button type="submit" loading={signIn.isPending} disabled={username === "" || password === ""}>
              Sign in
            </Button>
          </Stack>
        </Paper>
        <Stack gap="xs">
          <Text size="sm" c="dimmed">
            A hub started by <Code>make run</Code>: the username and the password are in the file{" "}
            <Code>credentials.json</Code> of its data folder, <Code>var</Code> by default. The hub's banner
            shows the path.
          </Text>
          <Text size="sm" c="dimmed">
            Any other hub: <Code>manage.py createsuperuser</Code> creates an operator,{" "}
            <Code>manage.py changepassword NAME</Code> sets a new password.
          </Text>
        </Stack>
      </Stack>
    </main>
  );
}
