/** JSON whose numbers keep every digit: a number that a double would round stays as text. */

declare global {
  interface JSON {
    rawJSON?(text: string): object;
    parse(text: string, reviver: Reviver): unknown;
  }
}

type Reviver = (this: unknown, name: string, value: unknown, context?: { source?: string }) => unknown;

const LONG = /[0-9][0-9.]{15}|[0-9][eE][+-]?[0-9]{3}/; // without such a run of digits nothing can be rounded

/** Parses JSON. A number that a double would round becomes an object that JSON.stringify writes as it came. */
export function parseExactly(text: string): unknown {
  if (!LONG.test(text)) return JSON.parse(text) as unknown;
  return JSON.parse(text, (_name, value, context) =>
    typeof value === "number" && context?.source !== undefined && isRounded(value, context.source) ? exactNumber(context.source) : value,
  );
}

/** The number of a JSON text in the notation of the text, such as 20.0: if a double's differs, such an object. */
export function exactNumber(text: string): unknown {
  const value = Number(text);
  return String(value) === text || JSON.rawJSON === undefined ? value : JSON.rawJSON(text);
}

function isRounded(value: number, text: string): boolean {
  return digitsOf(String(value)) !== digitsOf(text);
}

/** The significant digits of a number: those of 1.50e3 are 15. */
function digitsOf(text: string): string {
  const [mantissa = ""] = text.split(/e/i);
  return mantissa.replace(/[-.]/g, "").replace(/^0+|0+$/g, "");
}

/** Return whether a value is such an object. */
export function isRaw(value: unknown): value is { rawJSON: string } {
  return typeof value === "object" && value !== null && "rawJSON" in value && Object.getPrototypeOf(value) === null;
}

/** The answer, whose JSON is read exactly. */
export async function exactAnswer(answer: Response): Promise<Response> {
  if (!answer.ok || !(answer.headers.get("Content-Type") ?? "").includes("json")) return answer;
  const text = await answer.text();
  const headers = new Headers(answer.headers);
  headers.set("Content-Length", String(text.length)); // makes openapi-fetch call json()
  const exact = new Response(text, { status: answer.status, headers });
  exact.json = () => Promise.resolve(parseExactly(text));
  return exact;
}
