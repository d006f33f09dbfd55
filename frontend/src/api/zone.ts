import { useParams } from "react-router";

/** The zone of the page that is shown; it is part of the address. */
export function useZone(): string {
  return useParams().zone ?? "default";
}

export function pathIn(zone: string, page: string): string {
  return `/zones/${encodeURIComponent(zone)}/${page}`;
}
