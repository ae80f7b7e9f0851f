import type { SimulatedWork } from "../catalogue.ts";
import { type CatalogueIndex, copiesVia } from "../catalogue-index.ts";
import {
  html,
  json,
  redirect,
  type SimulatedReply,
  type SimulatedRequest,
  type SimulatedService,
  text,
} from "../exchange.ts";
import { pageReply } from "../page.ts";

/** One capture of a URL. */
interface Capture {
  readonly original: string;
  /** Fourteen digits: year to second. */
  readonly timestamp: string;
  /** The status that was archived, which may be an error. */
  readonly status: 200 | 429;
  readonly mimetype: string;
  readonly work: SimulatedWork;
}

const FIELDS = ["urlkey", "timestamp", "original", "mimetype", "statuscode", "digest", "length"] as const;

/** web.archive.org: the index of captures (CDX), and the captures themselves. */
export function wayback(catalogue: CatalogueIndex): SimulatedService {
  const captures = capturesOf(catalogue);
  return request => {
    if (request.path === "/cdx/search/cdx") return cdx(captures, request);
    const [, timestamp, modifier = "", original] = /^\/web\/(\d{4,14})(id_)?\/(.+)$/.exec(request.path) ?? [];
    if (timestamp === undefined || original === undefined) return html("Not Found", "<h1>Not Found</h1>", 404);
    return replay(catalogue, captures, request, timestamp, modifier, `${original}${request.search}`);
  };
}

/** archive.org/wayback/available: the capture nearest to a date. */
export function availability(catalogue: CatalogueIndex): SimulatedService {
  const captures = capturesOf(catalogue);
  return ({ path, query }) => {
    if (path !== "/wayback/available") return html("Not Found", "<h1>Not Found</h1>", 404);
    const found = nearest(captures, query.get("url") ?? "", query.get("timestamp") ?? "");
    if (found?.status !== 200) return json({ url: query.get("url"), archived_snapshots: {} });
    const { timestamp, original } = found;
    const closest = {
      available: true,
      status: "200",
      timestamp,
      url: `http://web.archive.org/web/${timestamp}/${original}`,
    };
    return json({ url: query.get("url"), archived_snapshots: { closest } });
  };
}

/** The captures of good copies, and for the scenario html-only a capture of an error page. */
function capturesOf({ works }: CatalogueIndex): readonly Capture[] {
  return works.flatMap(work => {
    const captures = copiesVia(work, "wayback").flatMap(({ url }): readonly Capture[] => {
      const [, timestamp = "", original = ""] = /\/web\/(\d{14})id_\/(.+)$/.exec(url) ?? [];
      return [{ original, timestamp, status: 200, mimetype: "application/pdf", work }];
    });
    const [failed] = work.scenario === "html-only" ? work.copies : [];
    if (failed === undefined) return captures;
    return [{ original: failed.url, timestamp: `${work.year}0501120000`, status: 429, mimetype: "text/html", work }];
  });
}

/** The archive ignores the scheme. */
function isSameUrl(one: string, other: string): boolean {
  const bare = (url: string) => url.replace(/^https?:\/*/, "").replace(/\/$/, "");
  return bare(one) === bare(other);
}

function nearest(captures: readonly Capture[], url: string, timestamp: string): Capture | undefined {
  const wanted = Number(timestamp.padEnd(14, "0"));
  const distance = (capture: Capture) => Math.abs(Number(capture.timestamp) - wanted);
  return captures
    .filter(({ original }) => isSameUrl(original, url))
    .sort((one, other) => distance(one) - distance(other))[0];
}

function cdx(captures: readonly Capture[], { query }: SimulatedRequest): SimulatedReply {
  const url = query.get("url") ?? "";
  const isPrefix = query.get("matchType") === "prefix";
  const bare = url.replace(/^https?:\/\//, "");
  const filters = query.getAll("filter").map(filterOf);
  const rows = captures
    .filter(({ original }) =>
      isPrefix ? original.replace(/^https?:\/\//, "").startsWith(bare) : isSameUrl(original, url),
    )
    .map(row)
    .filter(each => filters.every(filter => filter(each)));
  const limit = Number(query.get("limit") ?? rows.length);
  // A negative limit means the last rows.
  const some = limit < 0 ? rows.slice(limit) : rows.slice(0, limit);
  const fields = query.get("fl")?.split(",") ?? [...FIELDS];
  const table = some.map(each => fields.map(field => each[field] ?? "-"));
  if (query.get("output") === "json") return json(table.length === 0 ? [] : [fields, ...table]);
  return text(table.map(line => `${line.join(" ")}\n`).join(""));
}

function filterOf(filter: string): (row: Record<string, string>) => boolean {
  const [, not, field = "", pattern = ""] = /^(!?)([a-z]+):(.*)$/.exec(filter) ?? [];
  const isWanted = not === "";
  // The real service takes a regular expression; clients send only plain words here.
  return row => (row[field] === pattern) === isWanted;
}

function row({ original, timestamp, status, mimetype, work }: Capture): Record<string, string> {
  const { host, pathname } = new URL(original);
  return {
    urlkey: `${host.split(".").reverse().join(",")})${pathname}`,
    timestamp,
    original,
    mimetype,
    statuscode: String(status),
    digest: status === 200 ? base32(work.file.sha1) : "AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA",
    length: String(status === 200 ? work.file.bytes + 512 : 740),
  };
}

function replay(
  catalogue: CatalogueIndex,
  captures: readonly Capture[],
  request: SimulatedRequest,
  timestamp: string,
  modifier: string,
  original: string,
): SimulatedReply {
  if (isExcluded(catalogue, original)) {
    return html("Blocked Site Error", "<p>This URL has been excluded from the Wayback Machine.</p>", 403, {
      "x-archive-wayback-runtime-error": "AdministrativeAccessControlException: Blocked Site Error",
    });
  }
  const found = nearest(captures, original, timestamp);
  if (found === undefined) return html("Not archived", "<p>The Wayback Machine has not archived that URL.</p>", 404);
  if (found.timestamp !== timestamp) {
    return redirect(`https://web.archive.org/web/${found.timestamp}${modifier}/${found.original}`, 302, {
      "x-archive-redirect-reason": `found capture at ${found.timestamp}`,
    });
  }
  const headers = { "memento-datetime": mementoDate(timestamp), "cache-control": "max-age=1800" };
  if (found.status !== 200) return html("Too Many Requests", "<h1>Too Many Requests</h1>", found.status, headers);
  const page = catalogue.pages.get(`web.archive.org/web/${timestamp}id_/${found.original}`);
  if (page === undefined) return html("Not archived", "<p>It cannot be shown.</p>", 404);
  const archived = pageReply(request, page);
  return {
    ...archived,
    headers: { ...archived.headers, ...headers, "x-archive-orig-content-type": "application/pdf" },
  };
}

/** Some publishers exclude their sites from the archive; here those of the scenario cookie-loop. */
function isExcluded({ works }: CatalogueIndex, original: string): boolean {
  return works.some(
    ({ scenario, copies }) => scenario === "cookie-loop" && copies.some(({ url }) => isSameUrl(url, original)),
  );
}

function mementoDate(timestamp: string): string {
  const [, year, month, day, hour, minute, second] = /^(\d{4})(\d\d)(\d\d)(\d\d)(\d\d)(\d\d)$/.exec(timestamp) ?? [];
  return new Date(`${year}-${month}-${day}T${hour}:${minute}:${second}Z`).toUTCString();
}

/** RFC 4648. A hash of 20 bytes needs no padding. */
function base32(hex: string): string {
  const bits = [...Buffer.from(hex, "hex")].map(byte => byte.toString(2).padStart(8, "0")).join("");
  const groups = bits.match(/.{5}/g) ?? [];
  return groups.map(group => "ABCDEFGHIJKLMNOPQRSTUVWXYZ234567"[Number.parseInt(group, 2)]).join("");
}
