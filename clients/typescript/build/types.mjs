// Generates src/generated from the OpenAPI and AsyncAPI documents, with the console's packages.

import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";

const here = import.meta.dirname;
const load = createRequire(`${here}/../../../frontend/package.json`);
const { default: openapiTS, astToString } = load("openapi-typescript");
const read = (name) => JSON.parse(readFileSync(`${here}/../${name}`, "utf8"));
const { info, components } = read("asyncapi.json");
const documents = {
  openapi: read("../../frontend/openapi.json"),
  asyncapi: { openapi: "3.1.0", info, paths: {}, components: { schemas: components.schemas } },
};

mkdirSync(`${here}/../src/generated`, { recursive: true });
for (const [name, document] of Object.entries(documents)) {
  const nodes = await openapiTS(document, { alphabetize: true, defaultNonNullable: false, emptyObjectsUnknown: true });
  writeFileSync(`${here}/../src/generated/${name}.ts`, astToString(nodes));
}
