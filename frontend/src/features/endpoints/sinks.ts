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
  ordered: boolean; // by default
  isOpen?: boolean; // it may need no user
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
  s3: {
    label: "S3: objects in a bucket",
    about: "The URL of the bucket, at AWS or at a server with the API of S3.",
    url: "https://s3.eu-north-1.amazonaws.com/my-bucket",
    settings: '{"region": "eu-north-1", "path": "{stream}/{year}/{month}/{day}/", "file": "ndjson.gz"}',
    user: "Access key id",
    secret: "Secret access key",
    ordered: true,
  },
  kafka: {
    label: "Kafka: records of a topic",
    about: "The servers of the cluster, without user and password; kafka:// without TLS.",
    url: "kafkas://kafka.example:9093?sasl=SCRAM-SHA-512",
    settings: '{"topic": "orders"}',
    user: "User name",
    secret: "Password",
    ordered: true,
    isOpen: true,
  },
};

export const KINDS: { value: Kind; label: string }[] = [
  { value: "https", label: "HTTPS: signed requests" },
  ...Object.entries(SINKS).map(([value, { label }]) => ({ value: value as SinkKind, label })),
];

export function authenticationOfSink(kind: SinkKind, user: string, secret: string): NewEndpoint["authentication"] {
  if (user === "" && SINKS[kind].isOpen === true) return null;
  if (kind === "s3") return { type: "access_key", access_key_id: user, secret_access_key: secret };
  return { type: "basic", username: user, password: secret };
}

export function isSink(kind: Kind): kind is SinkKind {
  return kind !== "https";
}
