import { Tooltip } from "@mantine/core";

const DAY = new Intl.DateTimeFormat(undefined, { dateStyle: "medium" });
const TIME = new Intl.DateTimeFormat(undefined, {
  hour: "2-digit",
  minute: "2-digit",
  second: "2-digit",
  fractionalSecondDigits: 3,
  hour12: false,
});
const CLOCK = new Intl.DateTimeFormat(undefined, { hour: "2-digit", minute: "2-digit", second: "2-digit", hour12: false });

interface Props {
  at: string; // RFC 3339
  exact?: boolean; // with milliseconds, without the day
}

/** A local time, with UTC as a tooltip. */
export function Moment({ at, exact = false }: Props) {
  const date = new Date(at);
  const text = exact ? TIME.format(date) : dayAndTime(date);
  return (
    <Tooltip label={`${at.replace("T", " ").replace(/(\+00:00|Z)$/, "")} UTC`}>
      <time dateTime={at} className="number">
        {text}
      </time>
    </Tooltip>
  );
}

function dayAndTime(date: Date): string {
  const clock = CLOCK.format(date);
  return date.toDateString() === new Date().toDateString() ? clock : `${DAY.format(date)}, ${clock}`;
}
