/** The keys of a policy file, read from its JSON Schema. */
import { ROLES } from "../../src/policy/roles.ts";

export interface JsonSchema {
  readonly description?: string;
  readonly type?: string | readonly string[];
  readonly enum?: readonly unknown[];
  readonly const?: unknown;
  readonly anyOf?: readonly JsonSchema[];
  readonly items?: JsonSchema;
  readonly properties?: Readonly<Record<string, JsonSchema>>;
  readonly additionalProperties?: JsonSchema | boolean;
}

/** One kind of object in a file, which may occur at several paths. */
export interface KeySection {
  /** `hosts.<host>.<role>`; empty for the file itself. */
  readonly paths: readonly string[];
  readonly keys: readonly SchemaKey[];
}

export interface SchemaKey {
  readonly name: string;
  readonly value: string;
  readonly fallback: string;
  readonly meaning: string;
  /** A number, a text or a boolean. Environment variables and command-line flags can set only such keys. */
  readonly isScalar: boolean;
}

const PLACEHOLDERS: Readonly<Record<string, string>> = {
  hosts: "<host>",
  services: "<service>",
  resolvers: "<resolver>",
  with: "<key>",
  costs: "<unit>",
};
const UNITS = [
  [/_ms$/, "milliseconds"],
  [/_s$/, "seconds"],
  [/_pct$/, "percent"],
] as const;

/** The objects of a file, in the order of their first path. Equal objects are one section with several paths. */
export function keySections(schema: JsonSchema): readonly KeySection[] {
  const found = new Map<string, { paths: string[]; keys: readonly SchemaKey[] }>();
  collect(schema, [], found);
  return [...found.values()];
}

function collect(
  schema: JsonSchema,
  path: readonly string[],
  found: Map<string, { paths: string[]; keys: readonly SchemaKey[] }>,
) {
  const { properties, additionalProperties, items, anyOf } = schema;
  // The former name of services: one row says so.
  if (path[0] === "groups") return;
  if (properties !== undefined) {
    const isByRole = ROLES.every(role => Object.hasOwn(properties, role));
    const keys = Object.entries(properties).map(([name, inner]) => keyOf(name, inner));
    const id = JSON.stringify(keys);
    const section = found.get(id) ?? { paths: [], keys };
    section.paths.push(path.join("."));
    found.set(id, section);
    for (const [name, inner] of Object.entries(properties)) {
      if (isByRole && (ROLES as readonly string[]).indexOf(name) > 0) continue;
      collect(
        inner,
        [...path, isByRole && name === ROLES[0] && inner.properties !== undefined ? "<role>" : name],
        found,
      );
    }
  }
  if (typeof additionalProperties === "object")
    collect(additionalProperties, [...path, PLACEHOLDERS[path.at(-1) ?? ""] ?? "<name>"], found);
  if (items !== undefined) collect(items, [...path.slice(0, -1), `${path.at(-1)}[]`], found);
  for (const choice of anyOf ?? []) collect(choice, path, found);
}

function keyOf(name: string, schema: JsonSchema): SchemaKey {
  const [, meaning = "", fallback = ""] = /^(.*?)\.? Default: (.*)$/s.exec(schema.description ?? "") ?? [];
  if (meaning === "") throw new Error(`the description of the key ${name} has no "Default: "`);
  const unit = UNITS.find(([suffix]) => suffix.test(name))?.[1];
  const kind = kindOf(schema);
  const isScalar =
    schema.properties === undefined && typeof schema.additionalProperties !== "object" && kind !== "list";
  return { name, value: unit === undefined ? kind : `${kind}, ${unit}`, fallback, meaning: `${meaning}.`, isScalar };
}

function kindOf({ type, enum: values, const: only, anyOf, additionalProperties, properties }: JsonSchema): string {
  if (values !== undefined) return values.map(value => `\`${String(value)}\``).join(", ");
  if (only !== undefined) return `\`${String(only)}\``;
  if (anyOf !== undefined) return [...new Set(anyOf.map(kindOf))].join(" or ");
  if (type === "array") return "list";
  if (type === "integer") return "whole number";
  if (type === "boolean") return "`true`, `false`";
  if (type === "string") return "text";
  if (typeof additionalProperties === "object" && properties === undefined) return "map";
  return type === "object" ? "keys below" : String(type);
}
