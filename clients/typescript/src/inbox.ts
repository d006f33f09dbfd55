/** A queue between callbacks and an asynchronous reader. */

export class Inbox<T> {
  readonly #items: T[] = [];
  #end: { error?: unknown } | undefined;
  #wake: (() => void) | undefined;

  /** Add an item; after the end it is ignored. */
  push(item: T): void {
    if (this.#end) return;
    this.#items.push(item);
    this.#wake?.();
  }

  /** End the queue, after the items in it; with an error if one is given. The first end counts. */
  end(error?: unknown): void {
    this.#end ??= error === undefined ? {} : { error };
    this.#wake?.();
  }

  /** Remove the items that wait. */
  clear(): void {
    this.#items.length = 0;
  }

  /** Return the next item; undefined at the end. Throws the error of the end. */
  async next(): Promise<T | undefined> {
    while (this.#items.length === 0 && !this.#end) {
      await new Promise<void>((resolve) => (this.#wake = resolve));
    }
    if (this.#items.length > 0) return this.#items.shift();
    if (this.#end && "error" in this.#end) throw this.#end.error;
    return undefined;
  }
}
