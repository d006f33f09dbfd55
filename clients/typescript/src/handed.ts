/**
 * Which events of a session the caller has: one that comes again after a lost connection is not
 * handed out twice. No I/O.
 */

import type { Delivered } from "./types.ts";

/** What to do with an event that arrives: hand it out, ignore it, or acknowledge it again. */
export type Decision = "deliver" | "ignore" | "acknowledge";

type Place = Pick<Delivered, "stream" | "segment" | "sequence">;

/** The events that were handed out and are not known to be acknowledged, by stream. */
export class HandedEvents {
  readonly #handed = new Map<string, Map<number, string>>(); // stream: sequence: segment
  readonly #acknowledging = new Map<string, Map<number, string>>();

  /** Decide about an event that arrives. */
  arrived({ stream, segment, sequence }: Place): Decision {
    if (this.#acknowledging.get(stream)?.get(sequence) === segment) return "acknowledge";
    return this.#handed.get(stream)?.get(sequence) === segment ? "ignore" : "deliver";
  }

  /** Note that the caller gets an event that it has to acknowledge. */
  handOut({ stream, segment, sequence }: Place): void {
    put(this.#handed, stream, sequence, segment);
  }

  /** Note an acknowledgement, of which it is not known whether the hub has it. */
  acknowledge({ stream, segment, sequence }: Place, through: boolean): void {
    for (const [one, its] of through ? [...(this.#handed.get(stream) ?? [])] : []) {
      if (one < sequence) this.#move(stream, one, its);
    }
    this.#move(stream, sequence, segment);
  }

  /** Note that the hub has stored an acknowledgement. */
  stored(stream: string, sequences: Iterable<number>): void {
    for (const sequence of sequences) this.#acknowledging.get(stream)?.delete(sequence);
  }

  /** Note that events are to be delivered again. */
  again({ stream, sequence }: Place): void {
    this.#handed.get(stream)?.delete(sequence);
  }

  /** Return the sequences of a stream whose acknowledgement is not known to be stored. */
  acknowledging(stream: string): number[] {
    return [...(this.#acknowledging.get(stream)?.keys() ?? [])];
  }

  #move(stream: string, sequence: number, segment: string): void {
    this.#handed.get(stream)?.delete(sequence);
    put(this.#acknowledging, stream, sequence, segment);
  }
}

function put(
  found: Map<string, Map<number, string>>,
  stream: string,
  sequence: number,
  segment: string,
): void {
  let of = found.get(stream);
  if (!of) found.set(stream, (of = new Map()));
  of.set(sequence, segment);
}
