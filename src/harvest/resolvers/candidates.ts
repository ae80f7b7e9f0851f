import type { Candidate } from "./resolver.ts";

/** An unknown version may be any of them, so it ranks in the middle. */
const VERSIONS = ["published", "accepted", undefined, "submitted"];
const KINDS = ["pdf", "xml", "html", "landing", "file"];

/**
 * Sorts candidates, the best first, and keeps each URL once. Articles come before landing pages, and landing pages before
 * other files. Then the order is: published, accepted, submitted version; PDF, XML, HTML; with a checksum; https. Equal
 * candidates keep the order of the service.
 */
export function ranked(candidates: readonly Candidate[]): readonly Candidate[] {
  const seen = new Set<string>();
  return candidates
    .toSorted((one, other) => {
      const ranks = rankOf(other);
      return (
        rankOf(one)
          .map((rank, index) => rank - (ranks[index] ?? 0))
          .find(difference => difference !== 0) ?? 0
      );
    })
    .filter(({ url }) => {
      const isNew = !seen.has(url);
      seen.add(url);
      return isNew;
    });
}

function rankOf({ url, kind, version, checksum, role = "article" }: Candidate): readonly number[] {
  return [
    role === "article" ? (kind === "landing" ? 1 : 0) : 2,
    VERSIONS.indexOf(version),
    KINDS.indexOf(kind),
    checksum === undefined ? 1 : 0,
    url.startsWith("https:") ? 0 : 1,
  ];
}
