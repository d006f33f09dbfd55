import { Anchor, Stack, Text, Title } from "@mantine/core";
import { isRouteErrorResponse, Link, useRouteError } from "react-router";

/** The page for an unknown path, or for a page that failed. */
export function Missing() {
  const error = useRouteError();
  const failed = error != null && !isRouteErrorResponse(error);
  return (
    <Stack gap="xs" p="xl" maw={560}>
      <Title order={1}>{failed ? "This page failed" : "There is no such page"}</Title>
      <Text c="dimmed">
        {failed
          ? "Load it again. After an upgrade of the hub, an open page may be older than the hub."
          : "Check the address, or start from the overview."}
      </Text>
      <Anchor component={Link} to="/" reloadDocument={failed}>
        To the overview
      </Anchor>
    </Stack>
  );
}
