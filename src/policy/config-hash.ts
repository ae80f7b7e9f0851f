import { textHash } from "../core/text/text-hash.ts";
import type { LoadedPolicy } from "./load.ts";

/**
 * Sixteen digits that tell policies apart, the same wherever the same is said, in whatever order and layer.
 * The password of a store is no part of it: it changes nothing that the policy allows, and is nobody's business.
 */
export function configHash({ ratelimits, breakers }: LoadedPolicy): string {
  return textHash(canonical({ ratelimits: ratelimits.options, breakers: breakers.options }));
}

/** JSON with its keys in order. */
function canonical(value: unknown, key = ""): string {
  if (Array.isArray(value)) return `[${value.map(item => canonical(item)).join(",")}]`;
  if (typeof value === "object" && value !== null) {
    const entries = Object.entries(value).filter(([, held]) => held !== undefined);
    return `{${entries
      .sort(([a], [b]) => (a < b ? -1 : 1))
      .map(([name, held]) => `${JSON.stringify(name)}:${canonical(held, name)}`)
      .join(",")}}`;
  }
  return JSON.stringify(key === "dsn" && typeof value === "string" ? value.replace(/\/\/.*@/, "//") : value);
}
