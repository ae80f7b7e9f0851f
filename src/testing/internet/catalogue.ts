/** The works of the simulated internet, their copies, and the pages at the URLs of the copies. */
import { type ArticlePlan, articleFile, digest } from "./article-file.ts";
import type { Copy, SimulatedIds } from "./copy.ts";
import type { PlacedPage } from "./page.ts";
import { SeededRandom } from "./seeded-random.ts";
import { WORK_SCENARIOS, type WorkScenario, type WorkScenarioName } from "./work-scenarios.ts";
import { titleOf } from "./work-titles.ts";

/** A work of the simulated internet, with everything that a test may compare with its result. */
export interface SimulatedWork {
  /** Its identifiers. */
  readonly ids: SimulatedIds;
  /** The title that services return. */
  readonly title: string;
  /** Year of publication. */
  readonly year: number;
  /** Names of the authors, one to four. */
  readonly authors: readonly string[];
  /** Which difficulty a harvester meets with this work. */
  readonly scenario: WorkScenarioName;
  /** `pdf` if at least one copy is good; `none` if no file can be downloaded. */
  readonly expects: "pdf" | "none";
  /** The copies that services name, good and bad ones. */
  readonly copies: readonly Copy[];
  /** The agency that registered the DOI; `none` if the DOI is not registered. */
  readonly registrar: "crossref" | "datacite" | "none";
  /** The URL that doi.org redirects to; undefined if the DOI is not registered. */
  readonly landing: string | undefined;
  /** The number of the work at repositories. */
  readonly record: number;
  /** The file that every good copy returns. */
  readonly file: {
    /** Length in bytes. */
    readonly bytes: number;
    /** Hash in lower-case hex. */
    readonly md5: string;
    /** Hash in lower-case hex. */
    readonly sha1: string;
    /** Hash in lower-case hex. */
    readonly sha256: string;
  };
}

export interface Catalogue {
  readonly works: readonly SimulatedWork[];
  /** Pages by URL without scheme: `host/path?query`. */
  readonly pages: ReadonlyMap<string, PlacedPage>;
}

const AUTHORS = ["A. Amsel", "B. Birke", "C. Clover", "D. Dorn", "E. Elster", "F. Farn", "G. Ginster"] as const;

export function makeCatalogue(seed: number, count: number): Catalogue {
  const pages = new Map<string, PlacedPage>();
  const works = scenariosFor(seed, count).map((workScenario, index) => makeWork(seed, index, workScenario, pages));
  return { works, pages };
}

/** Every scenario once per round, shuffled differently in each round. */
function scenariosFor(seed: number, count: number): readonly WorkScenario[] {
  const scenarios: WorkScenario[] = [];
  for (let round = 0; scenarios.length < count; round += 1)
    scenarios.push(...new SeededRandom(seed, "round", round).shuffled(WORK_SCENARIOS));
  return scenarios.slice(0, count);
}

function makeWork(
  seed: number,
  index: number,
  workScenario: WorkScenario,
  pages: Map<string, PlacedPage>,
): SimulatedWork {
  const random = new SeededRandom(seed, "work", index);
  const number = 100_000 + ((seed * 104_729 + index) % 800_000);
  const title = titleOf(random);
  const year = random.between(2004, 2026);
  const authors = random.shuffled(AUTHORS).slice(0, random.between(1, 4));
  const { ids, pages: scenarioPages, ...rest } = workScenario.build({ random, number, year });
  const plan: ArticlePlan = {
    seed: `${seed}/${index}`,
    title,
    name: ids.doi ?? "",
    bytes: random.between(5000, 200_000),
    modifiedMs: Date.UTC(year, random.between(0, 11), random.between(1, 28), 12),
  };
  const file = articleFile(plan);
  const digests = { md5: digest("md5", file), sha1: digest("sha1", file), sha256: digest("sha256", file) };
  for (const [url, page] of scenarioPages) pages.set(pageKeyOf(url), { page, article: { ...plan, md5: digests.md5 } });
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

/** The key of a page: http and https share it. */
function pageKeyOf(url: string): string {
  const { host, pathname, search } = new URL(url);
  return `${host}${pathname}${search}`;
}
