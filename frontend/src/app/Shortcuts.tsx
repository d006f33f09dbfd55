import { Group, Kbd, Modal, Stack, Text } from "@mantine/core";
import { useDisclosure } from "@mantine/hooks";
import { useEffect, useRef } from "react";
import { useNavigate } from "react-router";

import { includes, useRole } from "../api/session";
import { pathIn } from "../api/zone";
import { PAGES } from "./pages";

const PAUSE_MS_MAX = 2_000; // between `g` and the page's key

/** The keys of every page, and the list of them behind `?`. */
export function Shortcuts({ zone }: { zone: string }) {
  const navigate = useNavigate();
  const role = useRole();
  const pages = PAGES.filter((page) => includes(role, page.role ?? "viewer"));
  const [shown, { open, close }] = useDisclosure(false);
  const began = useRef(-Infinity);

  useEffect(() => {
    const pressed = (event: KeyboardEvent) => {
      if (event.ctrlKey || event.metaKey || event.altKey || isTyping(event.target)) return;
      if (event.key === "?") {
        open();
      } else if (event.timeStamp - began.current < PAUSE_MS_MAX) {
        began.current = -Infinity;
        const page = PAGES.find((one) => one.key === event.key);
        if (page !== undefined && includes(role, page.role ?? "viewer")) void navigate(pathIn(zone, page.path));
      } else if (event.key === "g") {
        began.current = event.timeStamp;
      }
    };
    document.addEventListener("keydown", pressed);
    return () => document.removeEventListener("keydown", pressed);
  }, [navigate, open, role, zone]);

  return (
    <Modal opened={shown} onClose={close} title="Keyboard" closeButtonProps={{ "aria-label": "Close" }}>
      <Stack gap="xs">
        {pages.map((page) => (
          <Row key={page.path} keys={["g", page.key]} label={page.label} />
        ))}
        <Row keys={["?"]} label="This list" />
        <Row keys={["Esc"]} label="Close a drawer or a dialog" />
      </Stack>
    </Modal>
  );
}

function Row({ keys, label }: { keys: string[]; label: string }) {
  return (
    <Group justify="space-between">
      <Text size="sm">{label}</Text>
      <Group gap={4}>
        {keys.map((key) => (
          <Kbd key={key}>{key}</Kbd>
        ))}
      </Group>
    </Group>
  );
}

function isTyping(target: EventTarget | null): boolean {
  return target instanceof HTMLElement && target.closest("input, textarea, select, [contenteditable=true]") !== null;
}
