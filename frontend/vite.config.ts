import react from "@vitejs/plugin-react";
import { defineConfig } from "vite";

import { packed } from "./build/packed.ts";

// The hub that `npm run dev` talks to.
const hub = process.env.HUB ?? "http://127.0.0.1:8000";

const APART = /node_modules\/(?!uplot|@codemirror|@lezer|@marijn|style-mod|w3c-keyname|crelt)/;

export default defineConfig({
  base: "/console/",
  plugins: [react(), packed()],
  // eventhub/web/console.py puts a fresh nonce in its place into every page it serves
  html: { cspNonce: "__CSP_NONCE__" },
  build: {
    target: "es2023",
    modulePreload: { polyfill: false },
    assetsInlineLimit: 0,
    chunkSizeWarningLimit: 800, // Mantine, React and the router, in one chunk that changes with them only
    rolldownOptions: {
      // uPlot and CodeMirror come with the pages that need them
      output: { codeSplitting: { groups: [{ name: "packages", test: APART }] } },
    },
  },
  server: { proxy: { "/v1": { target: hub, ws: true }, "/docs": { target: hub } } },
});
