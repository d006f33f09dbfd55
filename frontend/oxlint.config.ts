import { readdirSync } from "node:fs";

import { defineConfig, type OxlintOverride } from "oxlint";

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
  layer.map((folder): OxlintOverride => {
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

export default defineConfig({
  plugins: ["eslint", "typescript", "oxc", "react", "import", "promise"],
  categories: { correctness: "error", suspicious: "error" },
  options: { typeAware: true },
  rules: {
    // beyond the two categories: no value without a type, no promise that nobody awaits
    "max-lines": ["error", 300],
    "no-case-declarations": "error",
    "no-empty": "error",
    "no-fallthrough": "error",
    "no-prototype-builtins": "error",
    "no-var": "error",
    "prefer-const": "error",
    "prefer-rest-params": "error",
    "prefer-spread": "error",
    "react/rules-of-hooks": "error",
    "typescript/ban-ts-comment": "error",
    "typescript/no-confusing-void-expression": ["error", { ignoreArrowShorthand: true }],
    "typescript/no-deprecated": "error",
    "typescript/no-dynamic-delete": "error",
    "typescript/no-empty-object-type": "error",
    "typescript/no-explicit-any": "error",
    "typescript/no-invalid-void-type": "error",
    "typescript/no-misused-promises": "error",
    "typescript/no-mixed-enums": "error",
    "typescript/no-namespace": "error",
    "typescript/no-non-null-assertion": "error",
    "typescript/no-require-imports": "error",
    "typescript/no-unnecessary-condition": "error",
    "typescript/no-unsafe-argument": "error",
    "typescript/no-unsafe-assignment": "error",
    "typescript/no-unsafe-call": "error",
    "typescript/no-unsafe-function-type": "error",
    "typescript/no-unsafe-member-access": "error",
    "typescript/no-unsafe-return": "error",
    "typescript/only-throw-error": "error",
    "typescript/prefer-promise-reject-errors": "error",
    "typescript/prefer-reduce-type-parameter": "error",
    "typescript/require-await": "error",
    "typescript/restrict-plus-operands": ["error", { allowNumberAndString: false }],
    "typescript/restrict-template-expressions": ["error", { allowNumber: true }],
    "typescript/return-await": ["error", "error-handling-correctness-only"],
    "typescript/unified-signatures": "error",
    "typescript/use-unknown-in-catch-callback-variable": "error",
    // not for this code: JSX needs no import, tables take functions that render cells, pages take
    // hooks that fetch lists, and an effect may run again for what it does not read
    "import/no-unassigned-import": "off",
    "no-shadow": "off",
    "react/capitalized-calls": "off",
    "react/exhaustive-effect-dependencies": "off",
    "react/hooks": "off",
    "react/no-unstable-nested-components": "off",
    "react/react-in-jsx-scope": "off",
    "typescript/consistent-return": "off",
    "typescript/no-unsafe-type-assertion": "off",
  },
  ignorePatterns: ["dist", "src/api/schema.ts"],
  overrides: boundaries,
});
