import type { Assignment } from "./layer.ts";

const REPLACE = "replace";

/**
 * The assignments of several layers as one list, weakest layer first. A later value replaces an earlier one when the list
 * is assembled, with two exceptions: the members of a service are added to those of the layers before, and a value that
 * a layer sets for an entry itself also replaces the values of the entry's tiers in the layers before. Otherwise a limit
 * that the user lowers would have no effect for requests with a key.
 */
export function mergeLayers(layers: readonly (readonly Assignment[])[]): readonly Assignment[] {
  const lastLayerOf = new Map<string, number>();
  for (const [layer, assignments] of layers.entries())
    for (const { path } of assignments) if (path.length === 4) lastLayerOf.set(path.join(" "), layer);
  const kept = layers.flatMap((assignments, layer) =>
    assignments.filter(({ path }) => {
      const base = tierBase(path);
      return !isMembers(path) && (base === undefined || (lastLayerOf.get(base) ?? 0) <= layer);
    }),
  );
  return [...kept, ...mergedMembers(layers)];
}

/** True for the members of a service, and for what is below them. */
function isMembers([first, , key]: readonly string[]): boolean {
  return first === "services" && key === "members";
}

/** The path of the entry's own value that a tier's value stands for; undefined for other paths. */
function tierBase([first, name, key, , ...rest]: readonly string[]): string | undefined {
  return key === "with" && rest.length > 0 ? [first, name, ...rest].join(" ") : undefined;
}

/** The members of each service: those of every layer, from the last one on that replaces the members before it. */
function mergedMembers(layers: readonly (readonly Assignment[])[]): readonly Assignment[] {
  const byService = new Map<string, Assignment>();
  for (const { path, value, where } of layers.flat()) {
    const [, service = ""] = path;
    if (!isMembers(path) || !Array.isArray(value)) continue;
    const known = path[3] === REPLACE ? [] : (byService.get(service)?.value ?? []);
    byService.set(service, { path: path.slice(0, 3), value: [...(known as unknown[]), ...value], where });
  }
  return [...byService.values()];
}
