/** A way to the hub that can be cut: a TCP relay on a port of its own. */

import { connect, createServer } from "node:net";
import type { AddressInfo, Server, Socket } from "node:net";

/** `cut` ends what is open and refuses what comes; `mend` takes connections again. */
export class Relay {
  /** Before the next answer is passed on, its connection is ended: the answer is lost. */
  swallow = false;
  #port = 0;
  #server: Server | undefined;
  readonly #hub: URL;
  readonly #open = new Set<Socket>();

  constructor(hub: string) {
    this.#hub = new URL(hub);
  }

  get url(): string {
    return `http://127.0.0.1:${this.#port}`;
  }

  async mend(): Promise<void> {
    const server = createServer((client) => this.#pass(client));
    this.#server = server;
    await new Promise<void>((resolve) => server.listen(this.#port, "127.0.0.1", resolve));
    this.#port = (server.address() as AddressInfo).port;
  }

  async cut(): Promise<void> {
    const server = this.#server;
    if (!server) return;
    this.#server = undefined;
    const closed = new Promise((resolve) => server.close(resolve));
    for (const socket of this.#open) socket.destroy();
    await closed;
  }

  #pass(client: Socket): void {
    const hub = connect(Number(this.#hub.port), this.#hub.hostname);
    for (const [one, other] of [
      [client, hub],
      [hub, client],
    ] as const) {
      this.#open.add(one);
      one.on("error", () => undefined);
      one.on("close", () => {
        this.#open.delete(one);
        other.destroy();
      });
    }
    client.on("data", (chunk) => hub.write(chunk));
    hub.on("data", (chunk) => {
      if (this.swallow) {
        this.swallow = false;
        client.destroy();
      } else {
        client.write(chunk);
      }
    });
  }
}
