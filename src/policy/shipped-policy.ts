import type { Assignment } from "./layer.ts";
import compiled from "./shipped-policy.json" with { type: "json" };

/** The policy files that come with the package, in `configs/networking/`. */
export type ShippedFile = "ratelimits" | "breakers" | "identities";

/** One value of a file, and the comment after it. */
export type ShippedValue = readonly [line: number, path: readonly string[], value: unknown, note?: string];

/** Every value of every file. */
export type ShippedPolicy = Readonly<Record<ShippedFile, readonly ShippedValue[]>>;

const SHIPPED = "(shipped)";
const layers = new Map<ShippedFile, readonly Assignment[]>();

/**
 * The values of a file that comes with the package. They were read and checked when the package was built: `npm run
 * schemas` writes `shipped-policy.json`, and a test compares it with the files.
 */
export function shippedValues(key: ShippedFile): readonly Assignment[] {
  const known = layers.get(key);
  if (known !== undefined) return known;
  const { [key]: values } = compiled as unknown as ShippedPolicy;
  const layer = values.map(([line, path, value, note]) => ({
    path,
    value,
    where: `${key}.yaml ${SHIPPED}:${line}`,
    note,
  }));
  layers.set(key, layer);
  return layer;
}

/** Whether the source of a value is a file that comes with the package. */
export function isShippedSource(where: string): boolean {
  return where.includes(`.yaml ${SHIPPED}:`);
}
