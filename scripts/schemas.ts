/** Writes the JSON Schemas of the policy files, for editors: `npm run schemas`. A test checks that they are current. */
import { mkdirSync, writeFileSync } from "node:fs";
import { jsonSchemas } from "../src/policy/json-schema.ts";

const folder = new URL("../configs/schema/", import.meta.url);
mkdirSync(folder, { recursive: true });
for (const [name, schema] of Object.entries(jsonSchemas())) {
  writeFileSync(new URL(`${name}.schema.json`, folder), `${JSON.stringify(schema, undefined, 2)}\n`);
}
