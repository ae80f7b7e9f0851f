/** The input and the result of a scenario, and parts that scenarios share. */
import type { Copy, ServiceName, SimulatedIds } from "./copy.ts";
import type { Page } from "./page.ts";
import type { SeededRandom } from "./seeded-random.ts";

export interface ScenarioDraft {
  readonly random: SeededRandom;
  /** Six digits, different for each work. */
  readonly number: number;
  readonly year: number;
}

export interface ScenarioWork {
  readonly ids: SimulatedIds;
  readonly registrar: "crossref" | "datacite" | "none";
  readonly landing: string | undefined;
  readonly copies: readonly Copy[];
  readonly pages: readonly (readonly [url: string, page: Page])[];
}

export const PUBLISHERS = [
  "www.northlight-journals.example",
  "journals.harbourpress.example",
  "www.meridian-science.example",
  "articles.kestrel.example",
] as const;
export const REPOSITORIES = ["eprints.lakeside.example", "dspace.hillford.example"] as const;

export function publisherOf({ random, number, year }: ScenarioDraft) {
  const host = random.pick(PUBLISHERS);
  // Each publisher has a prefix of its own, below the prefix for tests.
  const doi = `10.5555.${PUBLISHERS.indexOf(host) + 1}/${host.split(".")[1]?.slice(0, 4)}.${year}.${number}`;
  const landing = `https://${host}/article/${number}`;
  return { host, doi, landing, pdf: `${landing}/pdf` };
}

export function copy(url: string, via: readonly ServiceName[], more: Partial<Copy> = {}): Copy {
  return {
    url,
    via,
    kind: "pdf",
    isGood: true,
    version: "publishedVersion",
    licence: "cc-by",
    hostType: "publisher",
    ...more,
  };
}

export const IN_REPOSITORY = { hostType: "repository", version: "acceptedVersion", licence: null } as const;

/** The publisher has an article page but no open file. */
export function closedAtPublisher(draft: ScenarioDraft): ScenarioWork {
  const { doi, landing } = publisherOf(draft);
  return {
    ids: { doi },
    registrar: "crossref",
    landing,
    copies: [],
    pages: [[landing, { kind: "article", pdf: undefined, hints: [] }]],
  };
}
