import type { Assignment } from "./layer.ts";

const REPLACE = "replace";

/**
 * The assignments of several layers as one list, weakest layer first. When the list is assembled, a later value replaces
 * an earlier one, with two exceptions:
 *
 * 1. The members of a service are added to those of weaker layers.
 * 2. A value of an entry also replaces the same value of the entry's tiers in weaker layers, and a number in `defaults` of
 *    the breakers those of the roles. Otherwise a limit that the user lowers would have no effect for requests with a key,
 *    and `defaults.fail_max` none at all: the shipped file has a number for every role.
 */
export function mergeLayers(layers: readonly (readonly Assignment[])[]): readonly Assignment[] {
  const generalPaths = new Set<string>();
  for (const assignments of layers)
    for (const { path } of assignments) {
      const general = generalPath(path);
      if (general !== undefined) generalPaths.add(general);
    }
  const layersByPath = new Map<string, number[]>();
  for (const [layer, assignments] of layers.entries())
    for (const { path } of assignments) {
      const text = path.join(" ");
      if (generalPaths.has(text)) layersByPath.set(text, [...(layersByPath.get(text) ?? []), layer]);
    }
  const replacing = new Set<string>();
  const kept = layers.flatMap((assignments, layer) =>
    assignments.flatMap(assignment => {
      const { path } = assignment;
      if (isMembers(path)) return [];
      const general = generalPath(path);
      if (general !== undefined) {
        const replacedBy = layersByPath.get(general)?.find(other => other > layer);
        if (replacedBy === undefined) return [assignment];
        replacing.add(`${replacedBy} ${general}`);
        return [];
      }
      const replacesSpecific = replacing.has(`${layer} ${path.join(" ")}`);
      return [replacesSpecific ? { ...assignment, replacesSpecific } : assignment];
    }),
  );
  return [...kept, ...mergedMembers(layers)];
}

/** True for the members of a service, and for the keys below them. */
function isMembers([first, , key]: readonly string[]): boolean {
  return first === "services" && key === "members";
}

/**
 * The path of the more general value that replaces this one from a stronger layer: for a value of a tier
 * (`services.<name>.with.<key>.<role>.<field>`, or of one unit of its field) that of the entry itself, for
 * `defaults.roles.<role>.<field>` that of `defaults`. Undefined for other paths.
 */
function generalPath(path: readonly string[]): string | undefined {
  const [first = "", second = "", third, , ...field] = path;
  if (third === "with" && path.length >= 6) return [first, second, ...field].join(" ");
  if (first === "defaults" && second === "roles" && path.length === 4) return [first, path[3]].join(" ");
  return undefined;
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
