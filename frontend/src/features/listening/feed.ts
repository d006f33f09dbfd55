import { parseExactly } from "../../api/exact";
import { mintToken } from "../../api/hot";
import { Problem, textOf } from "../../api/problem";
import { type EventFrame, type Frame, type From, type ListenRequest } from "../events/frames";
import { startOf } from "../events/start";
import { filterOf } from "./request";

const LISTENER = "live";
const PAUSE_MS_MIN = 300; // before the first new attempt; each next bound is twice as long
const PAUSE_MS_MAX = 10_000;
const SILENCE_MS_MAX = 40_000; // the hub pings every 15 s; after this the connection counts as broken
const UNAUTHENTICATED = 4401;

export type Link =
  | { kind: "connecting" | "catching_up" | "live" | "paused" }
  | { kind: "waiting" | "ended"; reason: string };

export interface Sink {
  event(frame: EventFrame): void;
  gap(firstHeld: number | undefined): void;
  link(link: Link): void;
}

/**
 * One listener across broken connections and pauses, without loss or repetition: each new connection starts after the
 * cursor of the last received event.
 */
export class Feed {
  #request: ListenRequest;
  #sink: Sink;
  #from: From | undefined;
  #prev = 0; // the last sequence received; the next frame's `prev` must equal it (docs/session-protocol.md)
  #head = 0; // the stream's last sequence when the listener started
  #socket: WebSocket | undefined;
  #failures = 0;
  #timer: ReturnType<typeof setTimeout> | undefined;
  #run = 0; // incremented by each attempt, so that late answers of an older one are ignored

  constructor(request: ListenRequest, sink: Sink) {
    this.#request = request;
    this.#sink = sink;
  }

  /** Start, or resume after `pause`. */
  start(): void {
    void this.#connect();
  }

  pause(): void {
    this.close();
    this.#sink.link({ kind: "paused" });
  }

  /** Stop; no more events are reported. */
  close(): void {
    this.#run += 1;
    clearTimeout(this.#timer);
    this.#socket?.close(1000);
    this.#socket = undefined;
  }

  async #connect(): Promise<void> {
    this.close();
    const run = this.#run;
    this.#sink.link({ kind: "connecting" });
    try {
      this.#from ??= await this.#start();
      const token = await mintToken(this.#request.zone);
      if (run === this.#run) this.#open(token);
    } catch (error) {
      if (run !== this.#run) return;
      if (error instanceof Problem && error.status < 500) this.#end(textOf(error));
      else this.#retry(textOf(error));
    }
  }

  async #start(): Promise<From> {
    try {
      return await startOf(this.#request);
    } catch (error) {
      if (!(error instanceof Problem && error.code === "gap")) throw error;
      return this.#skipGap(error.firstHeld);
    }
  }

  /** Report that the requested events are no longer retained, and continue with the oldest retained event. */
  #skipGap(firstHeld: number | undefined): From {
    this.#sink.gap(firstHeld);
    this.#from = "oldest";
    return this.#from;
  }

  #open(token: string): void {
    const socket = new WebSocket(`/v1/ws?access_token=${encodeURIComponent(token)}`, "eventhub.v1.json");
    this.#socket = socket;
    socket.onopen = () => this.#listen();
    socket.onmessage = (message: MessageEvent<string>) => {
      if (socket === this.#socket) this.#receive(parseExactly(message.data) as Frame);
    };
    socket.onclose = (closed) => {
      if (socket !== this.#socket) return;
      this.#retry(closed.code === UNAUTHENTICATED ? "The token has expired." : "The connection was closed.");
    };
    this.#restartSilenceTimer();
  }

  #listen(): void {
    const { stream, channels } = this.#request;
    const mask = channels.length > 0 ? channels : undefined;
    const from = this.#from;
    const request = { stream, from, mask, ...filterOf(this.#request), state: "never" }; // events only: the state has its own page
    this.#socket?.send(JSON.stringify({ op: "listen", listener: LISTENER, ...request }));
  }

  #receive(frame: Frame): void {
    this.#restartSilenceTimer();
    switch (frame.op) {
      case "listening":
        this.#failures = 0;
        this.#from = frame.cursor;
        this.#prev = frame.cursor.sequence;
        this.#head = frame.head;
        this.#reportProgress(frame.cursor.sequence);
        return;
      case "event":
        if (!this.#follows(frame.prev)) return;
        this.#advance(frame.segment, frame.sequence);
        this.#sink.event(frame);
        this.#reportProgress(frame.sequence);
        return;
      case "ping": {
        const position = frame.positions[LISTENER];
        if (position === undefined || !this.#follows(position.prev)) return;
        this.#advance(position.segment, position.sequence);
        this.#reportProgress(position.sequence);
        return;
      }
      case "gap":
        this.#skipGap(frame.first_available.sequence);
        this.#listen();
        return;
      case "segment_mismatch":
      case "error":
        if (frame.status === 401) return; // the close that follows says so
        this.#end(frame.detail);
        return;
      case "status":
        this.#sink.link(frame.state === "waiting" ? { kind: "waiting", reason: frame.detail ?? "" } : { kind: "live" });
        return;
      default:
        return;
    }
  }

  #reportProgress(sequence: number): void {
    this.#sink.link({ kind: sequence < this.#head ? "catching_up" : "live" });
  }

  #advance(segment: string, sequence: number): void {
    this.#from = { segment, sequence };
    this.#prev = sequence;
  }

  /** Return false and reconnect from the cursor if a frame was lost. */
  #follows(prev: number): boolean {
    if (prev === this.#prev) return true;
    this.#retry("A frame was lost.");
    return false;
  }

  #restartSilenceTimer(): void {
    clearTimeout(this.#timer);
    this.#timer = setTimeout(() => this.#retry("No message for 40 s."), SILENCE_MS_MAX);
  }

  #retry(reason: string): void {
    this.close();
    const pause = Math.min(PAUSE_MS_MIN * 2 ** this.#failures, PAUSE_MS_MAX);
    this.#failures += 1;
    this.#sink.link({ kind: "waiting", reason: `${reason} Reconnecting.` });
    this.#timer = setTimeout(() => void this.#connect(), pause * (0.5 + Math.random() / 2));
  }

  #end(reason: string): void {
    this.close();
    this.#sink.link({ kind: "ended", reason });
  }
}
