/** The parser of server-sent events (the HTML standard, "Parsing an event stream"). */

/** One event of a stream of events. */
export interface ServerSent {
  readonly event: string;
  readonly data: string;
  readonly id: string;
}

/** Parses a stream of events, with its state between chunks. The hub ends lines with a line feed. */
export class EventStream {
  #rest = "";
  #id = "";
  #event = "message";
  #data: string[] = [];
  readonly #decoder = new TextDecoder();

  /** Return the events that a chunk of bytes completes. */
  feed(chunk: Uint8Array): ServerSent[] {
    const lines = (this.#rest + this.#decoder.decode(chunk, { stream: true })).split("\n");
    this.#rest = lines.pop() ?? "";
    const found: ServerSent[] = [];
    for (const line of lines) {
      const complete = this.#line(line.endsWith("\r") ? line.slice(0, -1) : line);
      if (complete) found.push(complete);
    }
    return found;
  }

  #line(line: string): ServerSent | undefined {
    if (line === "") return this.#complete();
    const at = line.indexOf(":");
    const name = at < 0 ? line : line.slice(0, at);
    const text = at < 0 ? "" : line.slice(at + 1);
    const value = text.startsWith(" ") ? text.slice(1) : text;
    if (name === "data") this.#data.push(value);
    else if (name === "id") this.#id = value;
    else if (name === "event") this.#event = value;
    return undefined; // other fields, and comments, which have no name: heartbeats
  }

  #complete(): ServerSent | undefined {
    const [event, data] = [this.#event, this.#data];
    this.#event = "message";
    this.#data = [];
    return data.length > 0 ? { event, data: data.join("\n"), id: this.#id } : undefined;
  }
}
