import { readdirSync } from "node:fs";

import eslint from "@eslint/js";
import hooks from "eslint-plugin-react-hooks";
import tseslint from "typescript-eslint";

// The layers of the console, lowest first. A file imports from its own folder and from lower layers.
// Features of one row do not import each other.
const FEATURES = [
  ["channels", "matchIndex", "monitoring", "operators", "overview", "storage", "streams", "types"],
  ["limits"],
  ["clients"],
  ["endpoints", "events", "jobs", "segments", "sessions"],
  ["audit", "connectors", "deliveries", "filters", "groups", "interest", "patterns", "retention", "sources", "timers"],
  ["deadLetters", "explain", "replays", "state"],
  ["applications", "eventDetail"],
  ["dryRun", "listening"],
  ["auditTrail", "backtest", "history", "registrations"],
];
const folders = readdirSync(`${import.meta.dirname}/src/features`);
const missing = folders.filter((name) => !FEATURES.flat().includes(name));
if (missing.length > 0) throw new Error(`Not in a layer: ${missing.join(", ")}`);

const LAYERS = [
  ["api"],
  ["parts"],
  ...FEATURES.map((row) => row.map((name) => `features/${name}`)),
  ["pages"],
  ["app"],
];

/** Forbid imports from the same and higher layers, in a rule for each folder. */
const boundaries = LAYERS.flatMap((layer, at) =>
  layer.map((folder) => {
    const forbidden = LAYERS.slice(at).flat().filter((other) => other !== folder);
    const names = forbidden.map((other) => other.replace("features/", "")).join("|");
    const up = folder.startsWith("features/") ? "(\\.\\./){1,2}(features/)?" : "(\\.\\./)+(features/)?";
    return {
      files: [`src/${folder}/**`],
      rules: {
        "no-restricted-imports": [
          "error",
          { patterns: [{ regex: `^${up}(${names})/`, message: "A higher or equal layer." }] },
        ],
      },
    };
  }),
);

export default tseslint.config(
  { ignores: ["dist", "src/api/schema.ts"] },
  eslint.configs.recommended,
  {
    files: ["**/*.ts", "**/*.tsx"],
    extends: [tseslint.configs.strictTypeChecked, hooks.configs.flat.recommended],
    languageOptions: { parserOptions: { projectService: true } },
    rules: {
      "@typescript-eslint/restrict-template-expressions": ["error", { allowNumber: true }],
      "@typescript-eslint/no-confusing-void-expression": ["error", { ignoreArrowShorthand: true }],
      "max-lines": ["error", 300],
    },
  },
  ...boundaries,
);
