import { SyntaxProblem } from "./syntax-problem.ts";

const SCHEMA_ORG = {
  "@vocab": "http://schema.org/",
  schema: "http://schema.org/",
  rdf: "http://www.w3.org/1999/02/22-rdf-syntax-ns#",
  rdfs: "http://www.w3.org/2000/01/rdf-schema#",
  owl: "http://www.w3.org/2002/07/owl#",
  xsd: "http://www.w3.org/2001/XMLSchema#",
  type: "@type",
  id: "@id",
  license: { "@type": "@id" },
  url: { "@type": "@id" },
  sameAs: { "@type": "@id" },
};

/**
 * The remote contexts that are known without a request. A checked file must not make this program call other hosts, and
 * the same file must give the same result every day.
 */
const CONTEXTS: ReadonlyMap<string, unknown> = new Map([
  ...["https://schema.org", "https://schema.org/", "http://schema.org", "http://schema.org/"].map(
    url => [url, SCHEMA_ORG] as const,
  ),
]);

export function pinnedContext(url: string): unknown {
  const context = CONTEXTS.get(url);
  if (context !== undefined) return context;
  throw new UnknownContext(url);
}

/** The context of a JSON-LD file is not in the pinned set. */
export class UnknownContext extends SyntaxProblem {
  constructor(url: string) {
    super(`context ${url.slice(0, 200)} is not available offline`);
  }
}
