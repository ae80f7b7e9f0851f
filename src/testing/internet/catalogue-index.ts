import type { Catalogue, SimulatedWork } from "./catalogue.ts";
import type { Copy, ServiceName } from "./copy.ts";

/** Looks up works by their identifiers. */
export class CatalogueIndex {
  readonly works: readonly SimulatedWork[];
  readonly pages: Catalogue["pages"];
  readonly #byName = new Map<string, SimulatedWork>();

  constructor({ works, pages }: Catalogue) {
    this.works = works;
    this.pages = pages;
    for (const work of works) {
      for (const [kind, id] of Object.entries(work.ids)) this.#byName.set(`${kind}:${id}`, work);
      this.#byName.set(`record:${work.record}`, work);
    }
  }

  /** Ignores case, and the prefixes `https://doi.org/` and `doi:`. */
  byDoi(doi: string): SimulatedWork | undefined {
    return this.#byName.get(`doi:${bareDoi(doi)}`);
  }

  by(kind: "arxiv" | "pmid" | "pmcid" | "openalex" | "record", id: string): SimulatedWork | undefined {
    return this.#byName.get(`${kind}:${id}`);
  }
}

export function copiesVia({ copies }: SimulatedWork, service: ServiceName): readonly Copy[] {
  return copies.filter(({ via }) => via.includes(service));
}

/** Whether the service stores the work or names a copy of it. */
export function isKnownTo(work: SimulatedWork, service: ServiceName): boolean {
  return copiesVia(work, service).length > 0;
}

function bareDoi(doi: string): string {
  return doi
    .trim()
    .toLowerCase()
    .replace(/^(?:https?:\/\/(?:dx\.)?doi\.org\/|doi:)/, "");
}
