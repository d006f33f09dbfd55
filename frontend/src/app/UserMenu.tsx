import { ActionIcon, Menu } from "@mantine/core";
import { IconLogout, IconUser } from "@tabler/icons-react";

import { useSignOut } from "../api/session";

export function UserMenu({ username }: { username: string }) {
  const signOut = useSignOut();
  return (
    <Menu position="bottom-end" width={200}>
      <Menu.Target>
        <ActionIcon variant="default" size={36} aria-label={`Signed in as ${username}`}>
          <IconUser size={18} stroke={1.7} />
        </ActionIcon>
      </Menu.Target>
      <Menu.Dropdown>
        <Menu.Label>Signed in as {username}</Menu.Label>
        <Menu.Item leftSection={<IconLogout size={16} stroke={1.7} />} onClick={() => signOut.mutate()}>
          Sign out
        </Menu.Item>
      </Menu.Dropdown>
    </Menu>
  );
}
