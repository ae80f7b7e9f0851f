import type { Work } from "./work.ts";

/**
 * What resolvers can see of a work apart from its numbers: the kinds of its identifiers, the prefix of its DOI and the words
 * of the suffix, the host of its URL. Works of one shape are asked about at the same services, so that what follows from
 * the shape is computed once for a list of a hundred thousand works.
 */
export function shapeOf({ ids }: Work): string {
  const { doi = "", url, ...others } = ids;
  const slash = doi.indexOf("/");
  const suffix = doi.slice(slash).replace(/\d+/g, "0");
  return `${Object.keys(others).join(" ")} ${doi.slice(0, slash)}${suffix} ${url === undefined ? "" : url.replace(/\d+/g, "0")}`;
}
