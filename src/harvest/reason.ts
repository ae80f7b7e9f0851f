/**
 * The result codes of works and attempts: one closed list for the manifest, its export, the summary and
 * docs/guides/run.md.
 */

/** The meaning of each code. docs/guides/run.md lists the same texts, and a test compares them. */
export const REASONS = {
  ok: "the file was downloaded and is valid",
  duplicate: "the same bytes are already stored, from another work or URL",
  "not-modified": "the server says the stored file has not changed (304)",
  found: "a service returned candidate URLs",
  "no-resolver": "none of the enabled resolvers handles this kind of identifier",
  "unknown-work": "no service knows the work",
  "no-copy": "a service knows the work, but none names a copy of it",
  "not-open": "a copy exists, but it is not open access",
  "not-a-pdf": "the downloaded file is not a PDF",
  "not-xml": "the downloaded file is not an XML document",
  "not-html": "the downloaded file is not an HTML page",
  "html-instead": "the server sent an HTML page instead of the file",
  "challenge-page": "the host sent a bot check (challenge page), which docstokg does not solve",
  truncated: "the file is incomplete",
  "checksum-mismatch": "the checksum differs from the one the service published",
  "too-large": "the file is larger than `--max-bytes`, or the response of a service is larger than docstokg reads",
  unreadable: "the response of the service could not be parsed",
  refused: "the service refused the request or the API key",
  robots: "robots.txt disallows the page, or could not be read (429, 5xx)",
  "private-address": "the host is in a private network (`--allow-private` permits it)",
  redirects:
    "a redirect loop (without a new cookie between the visits), too many redirects, or a redirect to a URL that is not http or https",
  "http-status": "the server returned an error status",
  network: "the connection failed or was interrupted",
  "time-out": "no response in time",
  "too-slow": "the server sent less than `--min-speed` for 30 seconds",
  "breaker-open": "a circuit is open, or a host is in cooldown, for longer than the work may wait (`--patience`)",
  "rate-limited":
    "the quota of a service or host is spent for longer than the work may wait; `docstokg retry` continues",
  merged: "the list has the same work under another identifier",
  "url-not-stored": "the URL contains a secret, which the manifest does not store: list the work again",
  filtered: "the work does not match the filters of the run",
} as const;

/** A result code of a work or an attempt. */
export type Reason = keyof typeof REASONS;

/** The codes of a work whose file is stored. */
export type DoneReason = "ok" | "duplicate" | "not-modified";

export function isReason(text: string): text is Reason {
  return Object.hasOwn(REASONS, text);
}

/** The codes of works that are done, and of attempts that gave candidates. */
const SUCCESSES: ReadonlySet<string> = new Set<Reason>(["ok", "duplicate", "not-modified", "found", "merged"]);

/** Whether a work failed because it could not wait longer: a retry may continue where it stopped. */
export function isTemporary(reason: Reason): boolean {
  return reason === "rate-limited" || reason === "breaker-open";
}

/** The codes that a failed work can have. */
export const FAILURE_REASONS: readonly Reason[] = Object.keys(REASONS)
  .filter(isReason)
  .filter(reason => !SUCCESSES.has(reason));

/** The most useful reason first: temporary ones, then those that prevented a download, then that there is no copy. */
const REASON_PRIORITY: readonly Reason[] = [
  "breaker-open",
  "rate-limited",
  "network",
  "time-out",
  "too-slow",
  "http-status",
  "challenge-page",
  "truncated",
  "checksum-mismatch",
  "too-large",
  "html-instead",
  "not-a-pdf",
  "not-xml",
  "not-html",
  "robots",
  "private-address",
  "redirects",
  "refused",
  "unreadable",
  "not-open",
  "no-copy",
  "unknown-work",
  "url-not-stored",
];

/** The reason of a failed work, from the reasons of its attempts. */
export function mainReason(reasons: Iterable<Reason>): Reason {
  const all = new Set(reasons);
  return REASON_PRIORITY.find(reason => all.has(reason)) ?? "no-resolver";
}
