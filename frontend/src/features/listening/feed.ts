import { parseExactly } from "../../api/exact";
import { mintToken } from "../../api/hot";
import { Problem, textOf } from "../../api/problem";
import { type EventFrame, type Frame, type From, type Wish } from "../events/frames";
import { startOf } from "../events/start";
import { filterOf } from "./wish";

const LISTENER = "live";
const PAUSE_MS_MIN = 300; // before the first new attempt; each next bound is twice as long
const PAUSE_MS_MAX = 10_000;
const SILENCE_MS_MAX = 40_000; // the hub pings every 15 s; after this the connection is taken for dead
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
 * One listen that goes on through broken connections and pauses without losing or repeating an event: whatever
 * happens, the next connection starts after the cursor of the last event taken.
 */
export class Feed {
  #wish: Wish;
  #sink: Sink;
  #from: From | undefined;
  #told = 0; // the last number this listen was told, see `prev` in docs/session-protocol.md
  #head = 0; // of the stream, when the listen began
  #socket: WebSocket | undefined;
  #failures = 0;
  #timer: ReturnType<typeof setTimeout> | undefined;
  #run = 0; // rises with every new attempt, so that late answers of an older one are known

  constructor(wish: Wish, sink: Sink) {
    this.#wish = wish;
    this.#sink = sink;
  }

  /** Begin, or go on after `pause`. */
  start(): void {
    void this.#connect();
  }

  pause(): void {
    this.close();
    this.#sink.link({ kind: "paused" });
  }

  /** Stop; nothing is told any more. */
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
      const token = await mintToken(this.#wish.zone);
      if (run === this.#run) this.#open(token);
    } catch (error) {
      if (run !== this.#run) return;
      if (error instanceof Problem && error.status < 500) this.#end(textOf(error));
      else this.#again(textOf(error));
    }
  }

  async #start(): Promise<From> {
    try {
      return await startOf(this.#wish);
    } catch (error) {
      if (!(error instanceof Problem && error.code === "gap")) throw error;
      return this.#missed(error.firstHeld);
    }
  }

  /** What was asked for is not held any more: said, and gone on with what is. */
  #missed(firstHeld: number | undefined): From {
    this.#sink.gap(firstHeld);
    this.#from = "oldest";
    return this.#from;
  }

  #open(token: string): void {
    const socket = new WebSocket(`/v1/ws?token=${encodeURIComponent(token)}`, "eventhub.v1.json");
    this.#socket = socket;
    socket.onopen = () => this.#listen();
    socket.onmessage = (message: MessageEvent<string>) => {
      if (socket === this.#socket) this.#hear(parseExactly(message.data) as Frame);
    };
    socket.onclose = (closed) => {
      if (socket !== this.#socket) return;
      this.#again(closed.code === UNAUTHENTICATED ? "The login is asked for again." : "The connection broke.");
    };
    this.#expectWord();
  }

  #listen(): void {
    const { stream, channels } = this.#wish;
    const mask = channels.length > 0 ? channels : undefined;
    const from = this.#from;
    const wish = { stream, from, mask, ...filterOf(this.#wish), state: "never" }; // events alone: the state has a page
    this.#socket?.send(JSON.stringify({ op: "listen", listener: LISTENER, ...wish }));
  }

  #hear(frame: Frame): void {
    this.#expectWord();
    switch (frame.op) {
      case "listening":
        this.#failures = 0;
        this.#from = frame.cursor;
        this.#told = frame.cursor.sequence;
        this.#head = frame.head;
        this.#reached(frame.cursor.sequence);
        return;
      case "event":
        if (!this.#follows(frame.prev)) return;
        this.#took(frame.segment, frame.sequence);
        this.#sink.event(frame);
        this.#reached(frame.sequence);
        return;
      case "ping": {
        const position = frame.positions[LISTENER];
        if (position === undefined || !this.#follows(position.prev)) return;
        this.#took(position.segment, position.sequence);
        this.#reached(position.sequence);
        return;
      }
      case "gap":
        this.#missed(frame.first_available.sequence);
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

  #reached(sequence: number): void {
    this.#sink.link({ kind: sequence < this.#head ? "catching_up" : "live" });
  }

  #took(segment: string, sequence: number): void {
    this.#from = { segment, sequence };
    this.#told = sequence;
  }

  /** False, and a new connection from the cursor, when a frame was lost on the way. */
  #follows(prev: number): boolean {
    if (prev === this.#told) return true;
    this.#again("A frame was lost on the way.");
    return false;
  }

  #expectWord(): void {
    clearTimeout(this.#timer);
    this.#timer = setTimeout(() => this.#again("The hub fell silent."), SILENCE_MS_MAX);
  }

  #again(reason: string): void {
    this.close();
    const pause = Math.min(PAUSE_MS_MIN * 2 ** this.#failures, PAUSE_MS_MAX);
    this.#failures += 1;
    this.#sink.link({ kind: "waiting", reason: `${reason} Trying again.` });
    this.#timer = setTimeout(() => void this.#connect(), pause * (0.5 + Math.random() / 2));
  }

  #end(reason: string): void {
    this.close();
    this.#sink.link({ kind: "ended", reason });
  }
}
