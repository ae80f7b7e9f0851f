/** The query of a URL or a path as text: what is not touched stays as it is, byte for byte, because it may be signed. */

export interface Parameter {
  readonly name: string;
  /** Name and value as they stand in a URL. */
  readonly text: string;
}

/** Appends, before a fragment, the parameters whose names are not there yet. */
export function withParameters(url: string, parameters: readonly Parameter[]): string {
  if (parameters.length === 0) return url;
  const { start, end } = queryRange(url);
  const present = parsed(start === undefined ? "" : url.slice(start, end));
  const added = parameters.filter(({ name }) => !present.has(name)).map(({ text }) => text);
  if (added.length === 0) return url;
  const before = url.slice(0, end);
  const glue = start === undefined ? "?" : start === end || before.endsWith("&") ? "" : "&";
  return `${before}${glue}${added.join("&")}${url.slice(end)}`;
}

/** Takes out the parameters that are unwanted, by what they say when decoded. */
export function withoutParameters(url: string, isUnwanted: (name: string, value: string) => boolean): string {
  const { start, end } = queryRange(url);
  if (start === undefined) return url;
  const parts = url.slice(start, end).split("&");
  const kept = parts.filter(part => {
    for (const [name, value] of parsed(part)) if (isUnwanted(name, value)) return false;
    return true;
  });
  if (kept.length === parts.length) return url;
  const before = kept.length === 0 ? url.slice(0, start - 1) : `${url.slice(0, start)}${kept.join("&")}`;
  return `${before}${url.slice(end)}`;
}

/** Where the query begins, if there is one, and where it ends or would begin. */
function queryRange(url: string): { readonly start: number | undefined; readonly end: number } {
  const hash = url.indexOf("#");
  const end = hash === -1 ? url.length : hash;
  const mark = url.indexOf("?");
  return { start: mark === -1 || mark > end ? undefined : mark + 1, end };
}

/** The parser drops a question mark in front, which is part of the first name here: `/a??b=1`. */
function parsed(query: string): URLSearchParams {
  return new URLSearchParams(`&${query}`);
}
