import { hasSecret } from "../redacted-url.ts";
import { isExcludedSite } from "./excluded-site.ts";
import { findingForStatus, findingOf, type RawCandidate, unreadable } from "./finding.ts";
import { RESPONSE_CHARS_MAX } from "./json-response.ts";
import { urlWithQuery } from "./request-url.ts";
import type { Resolver } from "./resolver.ts";

/** urlkey, timestamp, original, mimetype, statuscode, digest, length. */
const CAPTURE = /^\S+ (\d{14}) (https?:\/\/\S+) (\S+) (\d{3}|-) \S+ \S+$/;

/**
 * Captures of a URL in the Internet Archive, the last resort. Only URLs are looked up, because DOIs are redirects without
 * captures. The digest is not used as checksum: it covers the transferred bytes, which may be compressed.
 */
export const wayback: Resolver = {
  name: "wayback",
  needs: [],
  requestFor({ ids: { url } }) {
    // The archive must not learn a token of the user, and has no capture of a URL with one.
    if (url === undefined || hasSecret(url)) return undefined;
    const query = { url, limit: "-3" };
    const filters = ["statuscode:200", "mimetype:application/pdf"].map(each => `&filter=${encodeURIComponent(each)}`);
    return {
      url: `${urlWithQuery("https://web.archive.org/cdx/search/cdx", query)}${filters.join("")}`,
      role: "metadata",
    };
  },
  parse(response, work) {
    if (isExcludedSite(response.status, response.headers, response.body)) return { kind: "none", reason: "no-copy" };
    const statusFinding = findingForStatus(response);
    if (statusFinding !== undefined) return statusFinding;
    const lines = response.body
      .slice(0, RESPONSE_CHARS_MAX)
      .split("\n", 1000)
      .filter(line => line.trim() !== "");
    const captures = lines.flatMap(line => {
      const [, timestamp, original, type, status] = CAPTURE.exec(line.trim()) ?? [];
      return timestamp === undefined ? [] : [{ timestamp, original, type, status }];
    });
    const [first] = lines;
    if (first !== undefined && captures.length === 0)
      return unreadable(response, `no CDX capture list: ${JSON.stringify(first.slice(0, 60))}`);
    const rawCandidates = captures
      .filter(({ type, status }) => type === "application/pdf" && status === "200")
      .toSorted((one, other) => (one.timestamp < other.timestamp ? 1 : -1))
      // `id_` selects the original bytes, without the page frame of the archive.
      .map(
        ({ timestamp, original }): RawCandidate => ({
          url: `https://web.archive.org/web/${timestamp}id_/${original}`,
          kind: "pdf",
        }),
      );
    return findingOf(work, rawCandidates, { noneReason: "no-copy" });
  },
};
