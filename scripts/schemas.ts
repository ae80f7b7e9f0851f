/**
 * Writes the JSON Schemas of the policy files, for editors, and the shipped policy in the form that programs read when
 * they start: `npm run schemas`. Tests check that both are current.
 */
import { mkdirSync, writeFileSync } from "node:fs";
import { jsonSchemas } from "../src/policy/json-schema.ts";
import { compileShippedPolicy } from "./shipped-policy.ts";

const folder = new URL("../configs/schema/", import.meta.url);
mkdirSync(folder, { recursive: true });
for (const [name, schema] of Object.entries(jsonSchemas())) {
  writeFileSync(new URL(`${name}.schema.json`, folder), `${JSON.stringify(schema, undefined, 2)}\n`);
}

// One value in each line, so that a change of a file changes the lines of its values only.
const sections = Object.entries(compileShippedPolicy()).map(
  ([key, values]) =>
    `${JSON.stringify(key)}: [\n${values.map(value => `    ${JSON.stringify(value)}`).join(",\n")}\n  ]`,
);
writeFileSync(new URL("../src/policy/shipped-policy.json", import.meta.url), `{\n  ${sections.join(",\n  ")}\n}\n`);
