const NAME = "eventhub-zone";

/** The zone that was last opened in this browser. */
export function lastZone(): string {
  return localStorage.getItem(NAME) ?? "default";
}

export function keepZone(zone: string): void {
  localStorage.setItem(NAME, zone);
}
