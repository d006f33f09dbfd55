import { Drawer, type MantineSize } from "@mantine/core";
import { type ReactNode, useState } from "react";

interface Props<T> {
  of: T | undefined; // open while defined
  title: (of: T) => string;
  size?: MantineSize;
  onClose: () => void;
  children: (of: T) => ReactNode;
}

/** A drawer. While it closes, it still shows its last content. */
export function Side<T>({ of, title, size = "lg", onClose, children }: Props<T>) {
  const [last, setLast] = useState(of);
  if (of !== undefined && of !== last) setLast(of);
  const shown = of ?? last;
  return (
    <Drawer
      opened={of !== undefined}
      onClose={onClose}
      position="right"
      size={size}
      title={shown === undefined ? "" : title(shown)}
      closeButtonProps={{ "aria-label": "Close" }}
    >
      {shown !== undefined && children(shown)}
    </Drawer>
  );
}
