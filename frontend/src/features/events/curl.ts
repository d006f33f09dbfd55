/** Shell commands that repeat what the page shows; `$KEY` is the reader's key. */

export function readCurl(stream: string, sequence: number): string {
  return `curl ${location.origin}${pathOf(stream)}/${sequence} -H "Authorization: Bearer $KEY"`;
}

/** Append a similar event: without the id and the source of this one. */
export function emitCurl(stream: string, event: Record<string, unknown>): string {
  const like = Object.fromEntries(Object.entries(event).filter(([name]) => name !== "id" && name !== "source"));
  return `curl ${location.origin}${pathOf(stream)} -H "Authorization: Bearer $KEY" \\
     --json ${quoted(JSON.stringify(like))}`;
}

function pathOf(stream: string): string {
  return `/v1/streams/${encodeURIComponent(stream)}/events`;
}

function quoted(text: string): string {
  return `'${text.replaceAll("'", "'\\''")}'`;
}
