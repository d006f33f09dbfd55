import { Skeleton } from "@mantine/core";

/** A placeholder for content that is loading, `h` pixels high. */
export function Loading({ h }: { h: number | string }) {
  return <Skeleton h={h} role="status" aria-label="Loading" />;
}
