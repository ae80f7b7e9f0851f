/** What there is in the simulated internet: works, their copies, and the pages where the copies lie. */
import { type ArticlePlan, articleFile, digest } from "./article-file.ts";
import type { Copy, SimulatedIds } from "./copy.ts";
import type { PlacedPage } from "./page.ts";
import { SeededRandom } from "./seeded-random.ts";
import { WORK_SCENARIOS, type WorkScenario, type WorkScenarioName } from "./work-scenarios.ts";
import { titleOf } from "./work-titles.ts";

export interface SimulatedWork {
  readonly ids: SimulatedIds;
  readonly title: string;
  readonly year: number;
  readonly authors: readonly string[];
  /** What befalls those who look for it. */
  readonly scenario: WorkScenarioName;
  /** Whether it can be had. */
  readonly expects: "pdf" | "none";
  readonly copies: readonly Copy[];
  /** Who registered the DOI; "none" where there is no such DOI. */
  readonly registrar: "crossref" | "datacite" | "none";
  /** Where its DOI leads. */
  readonly landing: string | undefined;
  /** The number under which repositories keep it. */
  readonly record: number;
  /** Every good copy is this file. */
  readonly file: { readonly bytes: number; readonly md5: string; readonly sha1: string; readonly sha256: string };
}

export interface Catalogue {
  readonly works: readonly SimulatedWork[];
  /** By address, without its scheme: `host/path?query`. */
  readonly pages: ReadonlyMap<string, PlacedPage>;
}

const AUTHORS = ["A. Amsel", "B. Birke", "C. Clover", "D. Dorn", "E. Elster", "F. Farn", "G. Ginster"] as const;

export function makeCatalogue(seed: number, count: number): Catalogue {
  const pages = new Map<string, PlacedPage>();
  const works = scenariosFor(seed, count).map((workScenario, index) => makeWork(seed, index, workScenario, pages));
  return { works, pages };
}

/** Each round tells every tale, in an order of its own. */
function scenariosFor(seed: number, count: number): readonly (typeof WORK_SCENARIOS)[number][] {
  const scenarios: (typeof WORK_SCENARIOS)[number][] = [];
  for (let round = 0; scenarios.length < count; round += 1)
    scenarios.push(...new SeededRandom(seed, "round", round).shuffled(WORK_SCENARIOS));
  return scenarios.slice(0, count);
}

function makeWork(
  seed: number,
  index: number,
  workScenario: WorkScenario & { readonly scenario: WorkScenarioName },
  pages: Map<string, PlacedPage>,
): SimulatedWork {
  const random = new SeededRandom(seed, "work", index);
  const number = 100_000 + ((seed * 104_729 + index) % 800_000);
  const title = titleOf(random);
  const year = random.between(2004, 2026);
  const authors = random.shuffled(AUTHORS).slice(0, random.between(1, 4));
  const { ids, pages: described, ...rest } = workScenario.build({ random, number, year });
  const plan: ArticlePlan = {
    seed: `${seed}/${index}`,
    title,
    name: ids.doi ?? "",
    bytes: random.between(5000, 200_000),
    modifiedMs: Date.UTC(year, random.between(0, 11), random.between(1, 28), 12),
  };
  const file = articleFile(plan);
  const digests = { md5: digest("md5", file), sha1: digest("sha1", file), sha256: digest("sha256", file) };
  for (const [url, page] of described) pages.set(addressOf(url), { page, article: { ...plan, md5: digests.md5 } });
  return {
    ids: { ...ids, openalex: `W${4_000_000_000 + number}` },
    title,
    year,
    authors,
    scenario: workScenario.scenario,
    expects: rest.copies.some(({ isGood }) => isGood) ? "pdf" : "none",
    ...rest,
    record: number,
    file: { bytes: file.length, ...digests },
  };
}

/** The key of a page: http and https lead to the same. */
function addressOf(url: string): string {
  const { host, pathname, search } = new URL(url);
  return `${host}${pathname}${search}`;
}
