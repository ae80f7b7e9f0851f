/**
 * The part of a DOI before its suffix, for regular expressions. The registrant may have subdivisions: `10.1000/`,
 * `10.1000.10/`.
 */
export const DOI_PREFIX = String.raw`10\.\d{4,9}(?:\.\d+)*\/`;
