import { ActionIcon, Menu } from "@mantine/core";
import { useDisclosure } from "@mantine/hooks";
import { IconLogout, IconPassword, IconUser } from "@tabler/icons-react";

import { useRole, useSignOut } from "../api/session";
import { Side } from "../parts/Side";
import { ChangePassword } from "./ChangePassword";

export function UserMenu({ username }: { username: string }) {
  const signOut = useSignOut();
  const role = useRole();
  const [changing, { open, close }] = useDisclosure(false);
  return (
    <>
      <Menu position="bottom-end" width={220}>
        <Menu.Target>
          <ActionIcon variant="default" size={36} aria-label={`Signed in as ${username}`}>
            <IconUser size={18} stroke={1.7} />
          </ActionIcon>
        </Menu.Target>
        <Menu.Dropdown>
          <Menu.Label>
            Signed in as {username}, {role}
          </Menu.Label>
          <Menu.Item leftSection={<IconPassword size={16} stroke={1.7} />} onClick={open}>
            Change the password
          </Menu.Item>
          <Menu.Item leftSection={<IconLogout size={16} stroke={1.7} />} onClick={() => signOut.mutate()}>
            Sign out
          </Menu.Item>
        </Menu.Dropdown>
      </Menu>
      <Side of={changing || undefined} title={() => "Change the password"} size="md" onClose={close}>
        {() => <ChangePassword username={username} onChanged={close} />}
      </Side>
    </>
  );
}
