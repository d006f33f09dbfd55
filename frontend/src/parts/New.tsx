import { Button, type MantineSize } from "@mantine/core";
import { IconPlus } from "@tabler/icons-react";
import { type ReactNode, useState } from "react";

import type { Role } from "../api/session";
import { useMay } from "./May";
import { type Secret, SecretOnce } from "./SecretOnce";
import { Side } from "./Side";

interface Props {
  label: string; // `New endpoint`
  size?: MantineSize;
  variant?: "filled" | "default";
  role?: Role; // that an operator needs
  children: (onMade: (secret?: Secret) => void) => ReactNode; // the form
}

/** The button that opens a form in a drawer; the secret of the created object is shown once. */
export function New({ label, size = "md", variant = "filled", role, children }: Props) {
  const may = useMay(role);
  const [open, setOpen] = useState(false);
  const [secret, setSecret] = useState<Secret>();
  const made = (its?: Secret) => {
    setOpen(false);
    setSecret(its);
  };
  if (!may) return null;
  return (
    <>
      <Button variant={variant} leftSection={<IconPlus size={16} />} onClick={() => setOpen(true)}>
        {label}
      </Button>
      <Side of={open || undefined} title={() => label} size={size} onClose={() => setOpen(false)}>
        {() => children(made)}
      </Side>
      <SecretOnce secret={secret} onClose={() => setSecret(undefined)} />
    </>
  );
}
