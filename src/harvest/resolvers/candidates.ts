import type { Candidate } from "./resolver.ts";

/** A version that nobody states may be any of them. */
const VERSIONS = ["published", "accepted", undefined, "submitted"];
const KINDS = ["pdf", "xml", "html", "landing"];

/**
 * The best first, each address once. A file comes before a page that may lead to one, whatever the version; then the
 * published version before the accepted before the submitted; then PDF, XML, HTML; then what can be verified, and
 * what cannot be tampered with on the way. Equals keep their order, which is the order of whoever named them.
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

function rankOf({ url, kind, version, checksum }: Candidate): readonly number[] {
  return [
    kind === "landing" ? 1 : 0,
    VERSIONS.indexOf(version),
    KINDS.indexOf(kind),
    checksum === undefined ? 1 : 0,
    url.startsWith("https:") ? 0 : 1,
  ];
}
