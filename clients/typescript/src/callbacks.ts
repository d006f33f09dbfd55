/** Verification of callbacks for receivers: Standard Webhooks v1 and v1a, with WebCrypto. */

const TOLERANCE_S = 300; // how far the sender's clock may be from ours
const SECRET = "whsec_";
const PUBLIC_KEY = "whpk_";

/** The request has no valid signature of these keys: answer 401 and drop it. */
export class UnverifiedCallback extends Error {
  override name = "UnverifiedCallback";
}

type HeaderValues = Headers | Readonly<Record<string, string | readonly string[] | undefined>>;

/**
 * Return the id of the delivery (`webhook-id`), which is the same for every attempt: keep it to
 * recognise repeats.
 *
 * `keys`: the endpoint's secret `whsec_…`, or its public key `whpk_…`, or several of them: one
 * signature by one of them is enough. `body`: the raw body, as received. Throws UnverifiedCallback.
 */
export async function verify(
  keys: string | readonly string[],
  headers: HeaderValues,
  body: string | Uint8Array,
  { nowMs = Date.now() }: { nowMs?: number } = {},
): Promise<string> {
  const found = lowerCase(headers);
  const id = found.get("webhook-id") ?? "";
  const timestamp = found.get("webhook-timestamp") ?? "";
  if (!id || !/^[0-9]+$/.test(timestamp)) {
    throw new UnverifiedCallback("The webhook-id or webhook-timestamp header is missing.");
  }
  if (Math.abs(nowMs / 1000 - Number(timestamp)) > TOLERANCE_S) {
    throw new UnverifiedCallback("The timestamp is too far from now: a replay, or a wrong clock.");
  }
  const signed = joined(`${id}.${timestamp}.`, body);
  const signatures = (found.get("webhook-signature") ?? "").split(/\s+/).filter(Boolean);
  for (const key of typeof keys === "string" ? [keys] : keys) {
    for (const one of signatures) {
      const at = one.indexOf(",");
      const signature = decoded(one.slice(at + 1));
      if (at > 0 && signature && (await isSigned(key, one.slice(0, at), signature, signed))) return id;
    }
  }
  throw new UnverifiedCallback("None of the request's signatures was made with these keys.");
}

/** Return the value of `webhook-signature`, to test a receiver. */
export async function sign(
  secret: string,
  id: string,
  timestampS: number,
  body: string | Uint8Array,
): Promise<string> {
  const key = await secretKey(secret, "sign");
  const signature = await crypto.subtle.sign("HMAC", key, joined(`${id}.${timestampS}.`, body));
  return `v1,${btoa(String.fromCharCode(...new Uint8Array(signature)))}`;
}

async function isSigned(
  key: string,
  version: string,
  signature: Bytes,
  signed: Bytes,
): Promise<boolean> {
  if (!key.startsWith(PUBLIC_KEY)) {
    if (version !== "v1") return false;
    // WebCrypto compares in constant time
    return await crypto.subtle.verify("HMAC", await secretKey(key, "verify"), signature, signed);
  }
  if (version !== "v1a") return false;
  const bytes = required(key.slice(PUBLIC_KEY.length));
  const publicKey = await crypto.subtle.importKey("raw", bytes, "Ed25519", false, ["verify"]);
  return await crypto.subtle.verify("Ed25519", publicKey, signature, signed);
}

async function secretKey(secret: string, use: "sign" | "verify"): Promise<CryptoKey> {
  const bytes = required(secret.startsWith(SECRET) ? secret.slice(SECRET.length) : secret);
  return await crypto.subtle.importKey("raw", bytes, { name: "HMAC", hash: "SHA-256" }, false, [use]);
}

type Bytes = Uint8Array<ArrayBuffer>;

function required(text: string): Bytes {
  const bytes = decoded(text);
  if (!bytes) throw new RangeError("A key is whsec_ or whpk_ and base64.");
  return bytes;
}

/** Decode base64; undefined if it is none. */
function decoded(text: string): Bytes | undefined {
  try {
    return Uint8Array.from(atob(text), (one) => one.charCodeAt(0));
  } catch {
    return undefined;
  }
}

function joined(prefix: string, body: string | Uint8Array): Bytes {
  const head = new TextEncoder().encode(prefix);
  const rest = typeof body === "string" ? new TextEncoder().encode(body) : body;
  const bytes = new Uint8Array(head.length + rest.length);
  bytes.set(head);
  bytes.set(rest, head.length);
  return bytes;
}

function lowerCase(headers: HeaderValues): Map<string, string> {
  const pairs = headers instanceof Headers ? [...headers.entries()] : Object.entries(headers);
  const found = new Map<string, string>();
  for (const [name, value] of pairs) {
    if (value !== undefined) found.set(name.toLowerCase(), String(value));
  }
  return found;
}
