/** The JSON object that was typed; empty text is an empty one; undefined: malformed. */
export function objectOf(text: string): Record<string, unknown> | undefined {
  if (text.trim() === "") return {};
  try {
    const found: unknown = JSON.parse(text);
    return typeof found === "object" && found !== null && !Array.isArray(found) ? (found as Record<string, unknown>) : undefined;
  } catch {
    return undefined;
  }
}
