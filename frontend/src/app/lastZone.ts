const NAME = "eventhub-zone";

/** The zone that was looked at last in this browser. */
export function lastZone(): string {
  return localStorage.getItem(NAME) ?? "default";
}

export function keepZone(zone: string): void {
  localStorage.setItem(NAME, zone);
}
