import type { Work } from "./work.ts";

/**
 * The kinds of a work's identifiers, its DOI and its URL. Each number in the suffix of the DOI and in the URL is replaced
 * by 0. Resolvers send the same kinds of requests for works of one shape. So the queue that a work starts in, and its
 * share of the estimate, are computed once for each shape, and not for each work of a long list.
 */
export function shapeOf({ ids }: Work): string {
  const { doi = "", url, ...others } = ids;
  const slash = doi.indexOf("/");
  const suffix = doi.slice(slash).replace(/\d+/g, "0");
  return `${Object.keys(others).join(" ")} ${doi.slice(0, slash)}${suffix} ${url === undefined ? "" : url.replace(/\d+/g, "0")}`;
}
