import { Problem } from "../api/problem";
import { Empty } from "./Empty";
import { PageHeader } from "./PageHeader";

interface Props {
  title: string; // `Endpoint 7`
  kind: string; // `endpoint`
  zone: string;
  back: { to: string; label: string }; // the list
}

/** The page of something that does not exist in the zone, or not any more. */
export function Absent({ title, kind, zone, back }: Props) {
  return (
    <>
      <PageHeader title={title} about="Not found" back={back} />
      <Empty title={`There is no such ${kind} in the zone ${zone}`} about={`It was deleted, or it belongs to another zone, or the address is wrong. The page ${back.label} lists those of this zone.`} />
    </>
  );
}

/** Whether the hub answered that there is no such thing. */
export function isAbsent(error: unknown): boolean {
  return error instanceof Problem && error.status === 404;
}
