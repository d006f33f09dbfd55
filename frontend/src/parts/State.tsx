import { Badge } from "@mantine/core";

const COLOURS: Record<string, string> = {
  ok: "teal",
  enabled: "teal",
  delivered: "teal",
  live: "teal",
  pending: "iris",
  catching_up: "iris",
  connecting: "yellow",
  waiting: "yellow",
  paused: "gray",
  cancelled: "gray",
  disabled: "gray",
  dead: "red",
  away: "red",
  ended: "red",
};

interface Props {
  state: string; // decides the colour
  label?: string; // the state itself if not given
}

/** A state as a word in its colour. */
export function State({ state, label = state }: Props) {
  return (
    <Badge color={COLOURS[state] ?? "gray"} variant="light" tt="none" fw={600} radius="sm">
      {label}
    </Badge>
  );
}
