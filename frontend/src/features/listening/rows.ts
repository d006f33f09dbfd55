import type { DeliveredEvent, ListenRequest } from "../events/frames";
import { Feed, type Link } from "./feed";

export const SHOWN_MAX = 1_000;

export type Row = { key: string; frame: DeliveredEvent } | { key: string; gap: number | undefined };

/** The state of the view; each change creates a new object. */
export interface Live {
  link: Link;
  rows: readonly Row[]; // newest first
  received: number;
  dropped: number; // from this view only; the log retains them
}

const NOTHING: Live = { link: { kind: "connecting" }, rows: [], received: 0, dropped: 0 };

/** The events of one listener, as a store for useSyncExternalStore; it notifies at most once per animation frame. */
export class LiveRows {
  #live = NOTHING;
  #fresh: Row[] = [];
  #link: Link = NOTHING.link;
  #due = false;
  #notify: () => void = () => undefined;
  #feed: Feed;

  constructor(request: ListenRequest) {
    this.#feed = new Feed(request, {
      event: (frame) => this.#add({ key: `${frame.segment} ${frame.sequence}`, frame }),
      gap: (gap) => this.#add({ key: `gap ${performance.now()}`, gap }),
      link: (link) => {
        this.#link = link;
        this.#soon();
      },
    });
  }

  read = (): Live => this.#live;

  subscribe = (notify: () => void): (() => void) => {
    this.#notify = notify;
    this.#feed.start();
    return () => {
      this.#notify = () => undefined;
      this.#feed.close();
    };
  };

  pause(): void {
    this.#feed.pause();
  }

  resume(): void {
    this.#feed.start();
  }

  clear(): void {
    this.#live = { ...this.#live, rows: [], received: 0, dropped: 0 };
    this.#notify();
  }

  #add(row: Row): void {
    this.#fresh.push(row);
    if (this.#fresh.length < SHOWN_MAX) this.#soon();
    else this.#flush(); // a hidden page gets no animation frames
  }

  #soon(): void {
    if (this.#due) return;
    this.#due = true;
    requestAnimationFrame(() => {
      this.#due = false;
      this.#flush();
    });
  }

  #flush(): void {
    const fresh = this.#fresh.reverse();
    this.#fresh = [];
    const all = [...fresh, ...this.#live.rows];
    this.#live = {
      link: this.#link,
      rows: all.slice(0, SHOWN_MAX),
      received: this.#live.received + fresh.length,
      dropped: this.#live.dropped + Math.max(0, all.length - SHOWN_MAX),
    };
    this.#notify();
  }
}
