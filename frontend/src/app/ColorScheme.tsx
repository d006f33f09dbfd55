import { ActionIcon, Menu, useMantineColorScheme } from "@mantine/core";
import { IconCheck, IconDeviceDesktop, IconMoon, IconSun } from "@tabler/icons-react";

const CHOICES = [
  { value: "light", label: "Light", icon: IconSun },
  { value: "dark", label: "Dark", icon: IconMoon },
  { value: "auto", label: "As the system", icon: IconDeviceDesktop },
] as const;

export function ColorScheme() {
  const { colorScheme, setColorScheme } = useMantineColorScheme();
  const chosen = CHOICES.find((choice) => choice.value === colorScheme) ?? CHOICES[2];
  return (
    <Menu position="bottom-end" width={180}>
      <Menu.Target>
        <ActionIcon variant="default" size={36} aria-label={`Colours: ${chosen.label}`}>
          <chosen.icon size={18} stroke={1.7} />
        </ActionIcon>
      </Menu.Target>
      <Menu.Dropdown>
        {CHOICES.map((choice) => (
          <Menu.Item
            key={choice.value}
            leftSection={<choice.icon size={16} stroke={1.7} />}
            rightSection={choice === chosen ? <IconCheck size={14} aria-label="chosen" /> : undefined}
            onClick={() => setColorScheme(choice.value)}
          >
            {choice.label}
          </Menu.Item>
        ))}
      </Menu.Dropdown>
    </Menu>
  );
}
