import { readFileSync } from "node:fs";
import type { ShippedFile, ShippedPolicy, ShippedValue } from "../src/policy/shipped-policy.ts";
import { readYamlLayer } from "../src/policy/yaml-layer.ts";

/** The shipped policy files in the form that programs read when they start, so that they need no YAML parser. */
export function compileShippedPolicy(): ShippedPolicy {
  const valuesOf = (key: ShippedFile) => {
    const file = new URL(`../configs/networking/${key}.yaml`, import.meta.url);
    const { assignments, problems } = readYamlLayer(readFileSync(file, "utf8"), "");
    if (problems.length > 0) throw new Error(`${key}.yaml: ${JSON.stringify(problems)}`);
    return assignments.map(({ path, value, where, note }): ShippedValue => {
      const line = Number(where.slice(1));
      return note === undefined ? [line, path, value] : [line, path, value, note];
    });
  };
  return { ratelimits: valuesOf("ratelimits"), breakers: valuesOf("breakers"), identities: valuesOf("identities") };
}
