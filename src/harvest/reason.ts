/**
 * Why a work, or one attempt at it, came to what it came to: one closed list, the same in the manifest, in its export,
 * in the summary and in docs/guides/run.md.
 */

/** What each code says, as the documents list it. */
export const REASONS = {
  ok: "a file came, and it is sound",
  duplicate: "the same bytes were here already, under another work or address",
  "not-modified": "the server says that what we have still holds",
  found: "a service named places where a copy may be",
  "no-resolver": "no service that may be asked can know such a work",
  "unknown-work": "the services do not know the work",
  "no-copy": "the work is known, a copy of it is not",
  "not-open": "there is a copy, and it is not open",
  "not-a-pdf": "what came is no PDF",
  "not-xml": "what came is no XML document",
  "html-instead": "a page came in place of the file",
  "challenge-page": "the host wants proof that a person asks; we do not give it",
  truncated: "the file breaks off",
  "checksum-mismatch": "the file is not the one that the service describes",
  "too-large": "the file, or the answer, is larger than allowed",
  unreadable: "the answer of a service has a shape that we do not know",
  refused: "the service refuses us, or our key",
  robots: "robots.txt asks us to leave the page alone",
  "private-address": "the address is of a private network, and nobody has allowed that",
  redirects: "redirects that lead nowhere",
  "http-status": "the server answered with an error",
  network: "the connection failed, or broke off",
  "time-out": "no answer in time",
  "breaker-open": "the host is cut off, and stays so for longer than the work may wait",
  "rate-limited": "the host's limits leave no room",
} as const;

export type Reason = keyof typeof REASONS;

/** The work is there. */
export type DoneReason = "ok" | "duplicate" | "not-modified";

export function isReason(text: string): text is Reason {
  return Object.hasOwn(REASONS, text);
}

/** The most telling first: what may pass, then what stood in the way of a copy, then that there was none. */
const REASON_PRIORITY: readonly Reason[] = [
  "breaker-open",
  "rate-limited",
  "network",
  "time-out",
  "http-status",
  "challenge-page",
  "truncated",
  "checksum-mismatch",
  "too-large",
  "html-instead",
  "not-a-pdf",
  "not-xml",
  "robots",
  "private-address",
  "redirects",
  "refused",
  "unreadable",
  "not-open",
  "no-copy",
  "unknown-work",
];

/** Of all that went wrong with a work, what is told of it as a whole. */
export function mainReason(reasons: Iterable<Reason>): Reason {
  const all = new Set(reasons);
  return REASON_PRIORITY.find(reason => all.has(reason)) ?? "no-resolver";
}
