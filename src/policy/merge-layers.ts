import type { Assignment } from "./layer.ts";

const REPLACE = "replace";

/**
 * The assignments of several layers as one list, weakest layer first. When the list is assembled, a later value replaces
 * an earlier one, with two exceptions:
 *
 * 1. The members of a service are added to those of weaker layers.
 * 2. A value of an entry also replaces the same value of the entry's tiers in weaker layers. Otherwise a limit that the
 *    user lowers would have no effect for requests with a key.
 */
export function mergeLayers(layers: readonly (readonly Assignment[])[]): readonly Assignment[] {
  const namesWithTiers = new Set<string>();
  for (const assignments of layers)
    for (const { path } of assignments) if (isTier(path)) namesWithTiers.add(path[1] ?? "");
  const isTiered = (path: readonly string[]) =>
    path.length >= 4 && path[2] !== "with" && namesWithTiers.has(path[1] ?? "");
  const layersByPath = new Map<string, number[]>();
  for (const [layer, assignments] of layers.entries())
    for (const { path } of assignments)
      if (isTiered(path)) layersByPath.set(path.join(" "), [...(layersByPath.get(path.join(" ")) ?? []), layer]);
  const replacing = new Set<string>();
  const kept = layers.flatMap((assignments, layer) =>
    assignments.flatMap(assignment => {
      const { path } = assignment;
      if (isMembers(path)) return [];
      if (isTier(path)) {
        const replacedBy = layersByPath.get(tierBase(path))?.find(other => other > layer);
        if (replacedBy === undefined) return [assignment];
        replacing.add(`${replacedBy} ${tierBase(path)}`);
        return [];
      }
      const replacesTier = isTiered(path) && replacing.has(`${layer} ${path.join(" ")}`);
      return [replacesTier ? { ...assignment, replacesTier } : assignment];
    }),
  );
  return [...kept, ...mergedMembers(layers)];
}

/** True for the members of a service, and for the keys below them. */
function isMembers([first, , key]: readonly string[]): boolean {
  return first === "services" && key === "members";
}

/** True for a value of a tier: `services.<name>.with.<key>.<role>.<field>`, or of one unit of its field. */
function isTier({ length, 2: key }: readonly string[]): boolean {
  return length >= 6 && key === "with";
}

/** The path of the same value in the entry itself, without the tier. */
function tierBase([first, name, , , ...field]: readonly string[]): string {
  return [first, name, ...field].join(" ");
}

/** The members of each service in all layers. A layer with `replace` drops the members of the layers before it. */
function mergedMembers(layers: readonly (readonly Assignment[])[]): readonly Assignment[] {
  const byService = new Map<string, Assignment>();
  for (const assignments of layers) {
    for (const { path, value, where } of assignments) {
      if (!isMembers(path) || !Array.isArray(value)) continue;
      const [, service = ""] = path;
      const known = path[3] === REPLACE ? [] : (byService.get(service)?.value ?? []);
      byService.set(service, { path: path.slice(0, 3), value: [...(known as unknown[]), ...value], where });
    }
  }
  return [...byService.values()];
}
