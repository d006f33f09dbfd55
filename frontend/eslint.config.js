import eslint from "@eslint/js";
import hooks from "eslint-plugin-react-hooks";
import tseslint from "typescript-eslint";

// The layers of the console, lowest first. A file imports from its own folder and from lower layers.
// Features of one row do not import each other.
const FEATURES = [
  ["channels", "clients", "matchIndex", "overview", "storage", "streams", "types"],
  ["endpoints", "events", "groups", "jobs", "segments"],
  ["audit", "deliveries", "filters", "interest", "retention"],
  ["deadLetters", "explain", "replays", "state"],
  ["eventDetail"],
  ["dryRun", "listening"],
  ["backtest", "history", "registrations"],
];
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
