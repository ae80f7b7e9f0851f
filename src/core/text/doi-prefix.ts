/**
 * The part of a DOI before its suffix, for regular expressions. The registrant may have subdivisions: `10.1000/`,
 * `10.1000.10/`. Their number is limited: a pattern without a limit reads a long row of numbers again from each of them.
 */
export const DOI_PREFIX = String.raw`10\.\d{4,9}(?:\.\d{1,9}){0,9}\/`;
