import assert from "node:assert/strict";
import { readFile } from "node:fs/promises";
import { test } from "node:test";
import { jsonSchemas } from "./json-schema.ts";

test("the JSON Schemas are up to date, and the shipped files name them", async () => {
  for (const [name, schema] of Object.entries(jsonSchemas())) {
    const shipped = await readFile(new URL(`../../configs/schema/${name}.schema.json`, import.meta.url), "utf8");
    assert.deepEqual(JSON.parse(shipped), JSON.parse(JSON.stringify(schema)), `${name}: run npm run schemas`);
    const yaml = await readFile(new URL(`../../configs/networking/${name}.yaml`, import.meta.url), "utf8");
    assert.ok(yaml.startsWith(`# yaml-language-server: $schema=../schema/${name}.schema.json\n`));
  }
});

/** `key: text` of every documented member of the interfaces in a file. */
function documentedMembers(source: string): readonly string[] {
  return [...source.matchAll(/\/\*\*((?:(?!\*\/)[\s\S])*)\*\/\s*readonly (\w+)\??:/g)].map(
    ([, comment = "", key = ""]) => {
      const text = comment
        .replace(/\s*\n\s*\*/g, "")
        .replace("@default ", "Default: ")
        .replace(/\s+/g, " ");
      return `${key}: ${text.trim()}`;
    },
  );
}

/** `key: description` of every property at any depth. */
function describedProperties(schema: unknown): readonly string[] {
  if (typeof schema !== "object" || schema === null) return [];
  const { properties = {} } = schema as { readonly properties?: Readonly<Record<string, { description?: string }>> };
  const own = Object.entries(properties).map(([key, { description }]) => `${key}: ${description}`);
  return [...own, ...Object.values(schema).flatMap(describedProperties)];
}

test("editors and hover texts describe every key with the same words", async () => {
  const files = { ratelimits: "ratelimit", breakers: "breaker", identities: "identity" } as const;
  for (const [name, prefix] of Object.entries(files)) {
    const source = await readFile(new URL(`./${prefix}-options.ts`, import.meta.url), "utf8");
    const keys = source.match(/^ {2}readonly \w+\??:/gm) ?? [];
    assert.equal(documentedMembers(source).length, keys.length, `${prefix}-options.ts: a key has no comment`);
    const described = new Set(describedProperties(jsonSchemas()[name as keyof typeof files]));
    assert.deepEqual([...described].sort(), [...new Set(documentedMembers(source))].sort());
  }
});
