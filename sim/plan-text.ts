import type { Plan } from "./plan.ts";

/** A plan as readable JSON for `parsePlan`. Infinity is written as text, because JSON has none. */
export function planText(plan: Plan): string {
  const text = (value: unknown) =>
    JSON.stringify(value, (_, inner) => (inner === Number.POSITIVE_INFINITY ? "Infinity" : inner));
  const lines = Object.entries(plan).map(([key, value]) => {
    const isList = Array.isArray(value) && value.length > 0;
    const shown = isList ? `[\n    ${value.map(text).join(",\n    ")}\n  ]` : text(value);
    return shown === undefined ? undefined : `  ${JSON.stringify(key)}: ${shown}`;
  });
  return `{\n${lines.filter(line => line !== undefined).join(",\n")}\n}`;
}

export function parsePlan(json: string): Plan {
  return JSON.parse(json, (_, value) => (value === "Infinity" ? Number.POSITIVE_INFINITY : value)) as Plan;
}
