import type { WorkMetadata } from "./work.ts";

/** Which works are wanted. A work whose metadata lacks a field is wanted, whatever the filter says about that field. */
export interface WorkFilter {
  /** The first year. @default any */
  readonly fromYear?: number | undefined;
  /** The last year. @default any */
  readonly toYear?: number | undefined;
  /** Excludes works that a service reports as closed. @default false */
  readonly openOnly?: boolean | undefined;
  /** Licences without their version: `cc-by` matches `cc-by-4.0` and the URL of that licence, but not `cc-by-nc`. @default any */
  readonly licences?: readonly string[] | undefined;
  /** Types of CSL: `article-journal`, `chapter`. @default any */
  readonly types?: readonly string[] | undefined;
}

/** Why a work is not wanted; undefined if it is wanted. */
export function filterProblem(filter: WorkFilter, metadata: WorkMetadata = {}): string | undefined {
  const { year, licence, type, openAccess } = metadata;
  if (year !== undefined && filter.fromYear !== undefined && year < filter.fromYear)
    return `published in ${year}, before ${filter.fromYear}`;
  if (year !== undefined && filter.toYear !== undefined && year > filter.toYear)
    return `published in ${year}, after ${filter.toYear}`;
  if (filter.openOnly === true && openAccess === "closed") return "open access status is closed";
  if (type !== undefined && filter.types !== undefined && !filter.types.includes(type))
    return `type is ${type}, not ${filter.types.join(" or ")}`;
  const { licences } = filter;
  if (licence !== undefined && licences !== undefined && !licences.some(wanted => isLicence(licence, wanted)))
    return `licence is ${licence}, not ${licences.join(" or ")}`;
  return undefined;
}

/** `CC BY-NC 4.0`, `cc-by-nc`, `https://creativecommons.org/licenses/by-nc/4.0/` are one licence. */
function licenceName(text: string): string {
  return text
    .toLowerCase()
    .replace(/^https?:\/\/(?:www\.)?creativecommons\.org\/publicdomain\/zero\//, "cc0-")
    .replace(/^https?:\/\/(?:www\.)?creativecommons\.org\/(?:licenses|publicdomain)\//, "cc-")
    .replace(/[\s_/]+/g, "-")
    .replace(/-+$/, "")
    .replace(/-\d(?:\.\d)?(?:-(?:legalcode|deed(?:\.[a-z]{2})?|igo|[a-z]{2}))*$/, "");
}

function isLicence(licence: string, wanted: string): boolean {
  return licenceName(licence) === licenceName(wanted);
}
