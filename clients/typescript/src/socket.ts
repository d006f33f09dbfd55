/** A websocket of the hub with JSON frames. */

import { ConnectionLost, HubProblem, refusal } from "./errors.ts";
import { Http } from "./http.ts";
import type { HttpRequest } from "./http.ts";
import { Inbox } from "./inbox.ts";
import type { Message } from "./types.ts";

const SUBPROTOCOL = "eventhub.v1.json";
const SILENCE_MS = 45_000; // three heartbeats of the hub; then the connection counts as dead
const RESTARTS = 1012;
const PAUSE = /^retry_after=([0-9]+(?:\.[0-9]+)?)$/; // the reason of such a close
// the credential is refused, or may not be used from here
const FINAL: Record<number, { code: string; status: number }> = {
  4401: { code: "invalid_credentials", status: 401 },
  4403: { code: "address_not_allowed", status: 403 },
};

type WebSocketInit = { protocols: string[]; headers: Record<string, string> };
type Constructor = new (url: string, options: string[] | WebSocketInit) => WebSocket;

/** Whether the environment has websockets: browsers, and Node from version 22. */
export function hasWebSocket(): boolean {
  return typeof globalThis.WebSocket === "function";
}

/** Return the problem that a close of the hub means; undefined if it means a lost connection. */
export function closeProblem(code: number, reason: string): HubProblem | undefined {
  const final = FINAL[code];
  if (final) return refusal(final);
  if (code !== RESTARTS) return undefined;
  const pause = PAUSE.exec(reason);
  const detail = "The web process restarts.";
  return refusal({ code: "restarting", status: 503, detail }, pause ? Number(pause[1]) : undefined);
}

/** An open websocket: messages in order, until it ends. */
export class HubSocket {
  readonly #socket: WebSocket;
  readonly #inbox = new Inbox<Message>();
  #silence: ReturnType<typeof setTimeout> | undefined;

  private constructor(socket: WebSocket) {
    this.#socket = socket;
    socket.addEventListener("message", (event) => {
      this.#received();
      this.#inbox.push(JSON.parse(String(event.data)) as Message);
    });
    socket.addEventListener("close", (event) => {
      clearTimeout(this.#silence);
      this.#inbox.end(closeProblem(event.code, event.reason) ?? new ConnectionLost("It was closed."));
    });
  }

  /**
   * Open a websocket. Browsers do not show why a handshake was refused: `probe` is a request that
   * is refused for the same reason. Throws HubProblem, ConnectionLost.
   */
  static async open(http: Http, probe: HttpRequest, signal: AbortSignal): Promise<HubSocket> {
    const socket = await created(http);
    const opened = await new Promise<boolean>((resolve) => {
      socket.addEventListener("open", () => resolve(true));
      socket.addEventListener("error", () => resolve(false));
      socket.addEventListener("close", () => resolve(false));
      if (signal.aborted) socket.close();
      else signal.addEventListener("abort", () => socket.close(), { once: true });
    });
    if (opened) {
      const made = new HubSocket(socket);
      made.#received();
      return made;
    }
    await http.ask({ ...probe, signal });
    throw new ConnectionLost("The websocket could not be opened.");
  }

  /** Send a message. Throws ConnectionLost if the websocket is not open. */
  send(message: object): void {
    if (this.#socket.readyState !== 1) throw new ConnectionLost("The connection is closed.");
    this.#socket.send(JSON.stringify(message));
  }

  /** Return the next message; undefined after `close`. Throws HubProblem, ConnectionLost. */
  async next(): Promise<Message | undefined> {
    return await this.#inbox.next();
  }

  close(): void {
    clearTimeout(this.#silence);
    this.#inbox.clear();
    this.#inbox.end();
    this.#socket.close();
  }

  #received(): void {
    clearTimeout(this.#silence);
    this.#silence = setTimeout(() => {
      this.#inbox.end(new ConnectionLost("The hub is silent."));
      this.#socket.close();
    }, SILENCE_MS);
  }
}

/** Create a websocket: in Node with headers, in browsers with the token as a parameter. */
async function created(http: Http): Promise<WebSocket> {
  const url = `${http.baseUrl.replace(/^http/, "ws")}/v1/ws`;
  const Made = globalThis.WebSocket as unknown as Constructor;
  if ("process" in globalThis && typeof process.versions?.node === "string") {
    return new Made(url, { protocols: [SUBPROTOCOL], headers: await http.headers() });
  }
  const token = encodeURIComponent(await http.credential());
  return new Made(`${url}?access_token=${token}`, [SUBPROTOCOL]);
}
