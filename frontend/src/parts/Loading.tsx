import { Skeleton } from "@mantine/core";

/** In the place of what is not there yet, `h` pixels high. */
export function Loading({ h }: { h: number | string }) {
  return <Skeleton h={h} role="status" aria-label="Loading" />;
}
