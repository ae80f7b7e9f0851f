import { breakersSchema } from "./breaker-schema.ts";
import { identitiesSchema } from "./identity-schema.ts";
import { ratelimitsSchema } from "./ratelimit-schema.ts";
import type { AnySchema, Bound, SchemaNode } from "./schema.ts";

/** JSON Schemas of the policy files, for completion and checks in editors, generated from the schemas of the loader. */
export function jsonSchemas(): Readonly<Record<"ratelimits" | "breakers" | "identities", object>> {
  const make = (schema: AnySchema, title: string) => ({
    title,
    $schema: "https://json-schema.org/draft/2020-12/schema",
    ...jsonOf(schema),
  });
  return {
    ratelimits: make(ratelimitsSchema, "docstokg rate limits"),
    breakers: make(breakersSchema, "docstokg circuit breakers"),
    identities: make(identitiesSchema, "docstokg identification"),
  };
}

function jsonOf({ node, description }: AnySchema): object {
  return { ...(description === undefined ? {} : { description }), ...jsonOfNode(node) };
}

function jsonOfNode(node: SchemaNode): object {
  switch (node.kind) {
    case "string":
      return {
        type: "string",
        ...(node.min > 0 ? { minLength: node.min } : {}),
        ...(node.max < Number.POSITIVE_INFINITY ? { maxLength: node.max } : {}),
        ...patternsOf(node.patterns.map(({ expression }) => expression.source)),
      };
    case "number":
      return {
        type: node.isInteger ? "integer" : "number",
        ...Object.fromEntries(node.bounds.map(({ sign, limit }) => [BOUND_KEYS[sign], limit])),
      };
    case "boolean":
      return { type: "boolean" };
    case "one of": {
      const [only, another] = node.values;
      return { type: typeof only, ...(another === undefined ? { const: only } : { enum: node.values }) };
    }
    case "list":
      return {
        ...(node.min > 0 ? { minItems: node.min } : {}),
        ...(node.max < Number.POSITIVE_INFINITY ? { maxItems: node.max } : {}),
        type: "array",
        items: jsonOf(node.items),
      };
    case "map":
      return { type: "object", propertyNames: jsonOf(node.keys), additionalProperties: jsonOf(node.values) };
    case "object":
      return {
        type: "object",
        properties: Object.fromEntries(Object.entries(node.shape).map(([key, inner]) => [key, jsonOf(inner)])),
        ...requiredOf(node.shape),
        additionalProperties: false,
      };
    case "union":
      return { anyOf: node.options.map(jsonOf) };
    case "nullable":
      // Both remove an entry: the loader changes false to null before it checks the values.
      return { anyOf: [jsonOf(node.inner), { type: "null" }, { const: false }] };
    case "default":
      return { default: node.value, ...jsonOf(node.inner) };
    case "optional":
    case "converted":
    case "checked":
      return jsonOf(node.inner);
  }
}

const BOUND_KEYS: Readonly<Record<Bound["sign"], string>> = {
  ">=": "minimum",
  ">": "exclusiveMinimum",
  "<=": "maximum",
  "<": "exclusiveMaximum",
};

function requiredOf(shape: Readonly<Record<string, AnySchema>>): object {
  const required = Object.keys(shape).filter(key => !["optional", "default"].includes(shape[key]?.node.kind ?? ""));
  return required.length === 0 ? {} : { required };
}

function patternsOf([only, ...others]: readonly string[]): object {
  if (only === undefined) return {};
  return others.length === 0 ? { pattern: only } : { allOf: [only, ...others].map(pattern => ({ pattern })) };
}
