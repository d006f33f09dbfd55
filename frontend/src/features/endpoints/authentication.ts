import type { Authentication, Endpoint } from "./endpoints";

export type Kind = Authentication["type"];
type Shown = NonNullable<Endpoint["authentication"]>;

export const KINDS = [
  { value: "basic", label: "User name and password (Basic)" },
  { value: "bearer", label: "Bearer token" },
  { value: "oauth2_client_credentials", label: "OAuth 2.0 client credentials" },
  { value: "access_key", label: "Access key of S3" },
] as const;

/** The kinds that an endpoint knows. */
export function kindsOf(endpoint: Endpoint["kind"]): Kind[] {
  if (endpoint === "s3") return ["access_key"];
  return endpoint === "postgresql" ? ["basic"] : ["basic", "bearer", "oauth2_client_credentials"];
}

/** The secret field of each kind: never part of an answer. */
export const SECRETS = {
  basic: "password",
  bearer: "token",
  oauth2_client_credentials: "client_secret",
  access_key: "secret_access_key",
} as const;

/** The texts of the form; those of other kinds than the chosen one are not sent. */
export interface Draft {
  type: Kind;
  secret: string;
  username: string;
  token_url: string;
  client_id: string;
  access_key_id: string;
  scopes: string; // separated by spaces
  audience: string;
  client_authentication: "basic" | "body";
}

export function draftOf(shown: Shown | null): Draft {
  return {
    type: shown?.type ?? "basic", // a sink always has one
    secret: "",
    username: shown?.username ?? "",
    token_url: shown?.token_url ?? "",
    client_id: shown?.client_id ?? "",
    access_key_id: shown?.access_key_id ?? "",
    scopes: shown?.scopes?.join(" ") ?? "",
    audience: shown?.audience ?? "",
    client_authentication: shown?.client_authentication ?? "basic",
  };
}

export function authenticationOf(draft: Draft): Authentication {
  const { type, secret } = draft;
  if (type === "bearer") return { type, token: secret };
  if (type === "access_key") return { type, access_key_id: draft.access_key_id, secret_access_key: secret };
  if (type === "basic") return { type, username: draft.username, password: secret };
  const scopes = draft.scopes.split(/\s+/).filter((scope) => scope !== "");
  return {
    type,
    token_url: draft.token_url,
    client_id: draft.client_id,
    client_secret: secret,
    client_authentication: draft.client_authentication,
    ...(scopes.length > 0 ? { scopes } : {}),
    ...(draft.audience !== "" ? { audience: draft.audience } : {}),
  };
}
