/** Changes the query of a URL or path as text. Other parameters keep their exact bytes, because the URL may be signed. */

export interface Parameter {
  readonly name: string;
  /** Name and value, percent-encoded. */
  readonly text: string;
}

/** Appends the parameters whose names the query does not have yet. */
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

/** Removes parameters. `isUnwanted` gets them decoded. */
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

/** `start` is undefined without a query; `end` is where the query ends or would be inserted. */
function queryRange(url: string): { readonly start: number | undefined; readonly end: number } {
  const hash = url.indexOf("#");
  const end = hash === -1 ? url.length : hash;
  const mark = url.indexOf("?");
  return { start: mark === -1 || mark > end ? undefined : mark + 1, end };
}

/** URLSearchParams drops a leading question mark, but here it is part of the first name: `/a??b=1`. */
function parsed(query: string): URLSearchParams {
  return new URLSearchParams(`&${query}`);
}
