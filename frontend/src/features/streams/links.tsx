import { Anchor } from "@mantine/core";
import { Link } from "react-router";

import { pathIn } from "../../api/zone";
import { whole } from "../../parts/text";

/** From what a job names to its page; all take the zone that it is in. */

export function StreamLink({ zone, stream }: { zone: string; stream: string }) {
  return <To path={pathIn(zone, streamPath(stream, "segments"))} text={stream} />;
}

export function SegmentLink({ zone, stream, segment }: { zone: string; stream: string; segment: string }) {
  return <To path={`${pathIn(zone, streamPath(stream, "segments"))}?segment=${encodeURIComponent(segment)}`} text={segment.slice(0, 8)} mono />;
}

/** A range of sequences leads to its first event. */
export function SequenceLink({ zone, stream, first, last }: { zone: string; stream: string; first: number; last: number }) {
  const text = first === last ? whole(first) : `${whole(first)} to ${whole(last)}`;
  return first < 1 ? text : <To path={`${pathIn(zone, streamPath(stream, "events"))}?from=${first}&event=${first}`} text={text} />;
}

export function RegistrationLink({ zone, id }: { zone: string; id: number }) {
  return <To path={`${pathIn(zone, "registrations")}?registration=${id}`} text={String(id)} />;
}

export function EndpointLink({ zone, id }: { zone: string; id: number }) {
  return <To path={`${pathIn(zone, "deliveries")}?endpoint=${id}`} text={String(id)} />;
}

export function ClientLink({ zone, client }: { zone: string; client: string }) {
  return <To path={`${pathIn(zone, "clients")}?client=${encodeURIComponent(client)}`} text={client} />;
}

function To({ path, text, mono = false }: { path: string; text: string; mono?: boolean }) {
  return (
    <Anchor component={Link} to={path} size="sm" className={mono ? "mono" : undefined}>
      {text}
    </Anchor>
  );
}

function streamPath(stream: string, tab: string): string {
  return `streams/${encodeURIComponent(stream)}/${tab}`;
}
