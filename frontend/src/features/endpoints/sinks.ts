import type { Endpoint, NewEndpoint } from "./endpoints";

export type Kind = Endpoint["kind"];
export type SinkKind = Exclude<Kind, "https">;

/** What the form of a new sink shows; settings are JSON. */
interface SinkForm {
  label: string;
  about: string;
  url: string;
  settings: string;
  user: string;
  secret: string;
  ordered: boolean; // always
}

export const SINKS: Record<SinkKind, SinkForm> = {
  postgresql: {
    label: "PostgreSQL: rows of a table",
    about: "The URL of the database, without user and password.",
    url: "postgresql://db.example:5432/shop?sslmode=verify-full",
    settings: '{"table": "events", "columns": {"id": "/id", "stream": "/stream", "document": ""}}',
    user: "User name",
    secret: "Password",
    ordered: false,
  },
};

export const KINDS: { value: Kind; label: string }[] = [
  { value: "https", label: "HTTPS: signed requests" },
  ...Object.entries(SINKS).map(([value, { label }]) => ({ value: value as SinkKind, label })),
];

export function authenticationOfSink(_kind: SinkKind, user: string, secret: string): NewEndpoint["authentication"] {
  return { type: "basic", username: user, password: secret };
}

export function isSink(kind: Kind): kind is SinkKind {
  return kind !== "https";
}
