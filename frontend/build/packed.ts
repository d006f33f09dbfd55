import { readdir, readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { promisify } from "node:util";
import { gzip } from "node:zlib";

import type { Plugin } from "vite";

const pack = promisify(gzip);

/** Lays a gzip beside every asset, so that the hub packs nothing while it serves. */
export function packed(): Plugin {
  let folder = "";
  return {
    name: "packed",
    apply: "build",
    configResolved(config) {
      folder = join(config.root, config.build.outDir, config.build.assetsDir);
    },
    async closeBundle() {
      for (const name of await readdir(folder)) {
        const file = join(folder, name);
        await writeFile(`${file}.gz`, await pack(await readFile(file), { level: 9 }));
      }
    },
  };
}
