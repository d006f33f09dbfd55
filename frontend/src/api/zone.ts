import { useParams } from "react-router";

/** The zone of the current page, from its address. */
export function useZone(): string {
  return useParams().zone ?? "default";
}

export function pathIn(zone: string, page: string): string {
  return `/zones/${encodeURIComponent(zone)}/${page}`;
}
