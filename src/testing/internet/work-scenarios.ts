/**
 * Scenarios of works: which services know a work, where its copies are, and which copies are wrong. Each work is built
 * from its scenario with its own random numbers.
 */
import {
  archived,
  atPublisher,
  CDN,
  CROSSREF_INDEXES,
  LINK_HOP,
  onLandingPage,
  redirectChain,
  unknownDoi,
  wrongFirstCopy,
} from "./publisher-scenarios.ts";
import {
  biorxiv,
  figshare,
  inEuropePmc,
  inPmc,
  inRepository,
  onArxiv,
  osf,
  wrongChecksum,
  zenodo,
} from "./repository-scenarios.ts";
import { closedAtPublisher, PUBLISHERS, REPOSITORIES, type ScenarioDraft, type ScenarioWork } from "./scenario-work.ts";

/** The name of a scenario; the testing guide explains each. */
export type WorkScenarioName =
  | "publisher"
  | "attachment"
  | "arxiv"
  | "pmc"
  | "europe-pmc"
  | "zenodo"
  | "figshare"
  | "osf"
  | "biorxiv"
  | "hal"
  | "core"
  | "repository"
  | "signposting"
  | "citation-meta"
  | "alternate-link"
  | "redirect-chain"
  | "html-instead"
  | "challenge"
  | "html-only"
  | "cookie-loop"
  | "truncated-once"
  | "wrong-checksum"
  | "archived"
  | "closed"
  | "unknown-doi";

export interface WorkScenario {
  readonly scenario: WorkScenarioName;
  readonly build: (draft: ScenarioDraft) => ScenarioWork;
}

/** Invented hosts of publishers and universities, with pages and files. */
export const PAGE_HOSTS: readonly string[] = [...PUBLISHERS, ...REPOSITORIES, CDN, LINK_HOP];

function workScenario(scenario: WorkScenarioName, build: (draft: ScenarioDraft) => ScenarioWork): WorkScenario {
  return { scenario, build };
}

/** A frequent scenario occurs several times. */
export const WORK_SCENARIOS: readonly WorkScenario[] = [
  workScenario("publisher", draft => atPublisher(draft, { page: { kind: "pdf" }, via: CROSSREF_INDEXES })),
  workScenario("publisher", draft =>
    atPublisher(draft, { page: { kind: "pdf" }, via: [...CROSSREF_INDEXES, "doaj", "openaire"] }),
  ),
  workScenario("publisher", draft => atPublisher(draft, { page: { kind: "pdf", manner: "bare" }, via: ["crossref"] })),
  workScenario("publisher", draft => atPublisher(draft, { page: { kind: "pdf" }, via: ["openalex"] })),
  workScenario("attachment", draft =>
    atPublisher(draft, { page: { kind: "pdf", manner: "attachment" }, via: CROSSREF_INDEXES }),
  ),
  workScenario("arxiv", draft => onArxiv(draft, "10.48550")),
  workScenario("arxiv", draft => onArxiv(draft, "10.5555")),
  workScenario("pmc", draft => inPmc(draft, ["pmc"])),
  workScenario("pmc", draft => inPmc(draft, ["pmc"])),
  workScenario("pmc", draft => inPmc(draft, ["pmc", "openalex", "unpaywall"])),
  workScenario("europe-pmc", inEuropePmc),
  workScenario("zenodo", zenodo),
  workScenario("figshare", figshare),
  workScenario("osf", osf),
  workScenario("biorxiv", biorxiv),
  workScenario("hal", draft => inRepository(draft, "hal.science", n => `/hal-0${n}/document`, ["hal", "openaire"])),
  workScenario("core", draft =>
    inRepository(draft, "core.ac.uk", n => `/download/${n}.pdf`, ["core", "semantic_scholar"]),
  ),
  workScenario("repository", draft =>
    inRepository(draft, draft.random.pick(REPOSITORIES), n => `/id/eprint/${n}/1/paper.pdf`, ["unpaywall", "openalex"]),
  ),
  workScenario("signposting", draft => onLandingPage(draft, ["signposting"])),
  workScenario("citation-meta", draft => onLandingPage(draft, ["citation-meta", "json-ld"])),
  workScenario("alternate-link", draft => onLandingPage(draft, ["alternate"])),
  workScenario("redirect-chain", redirectChain),
  workScenario("html-instead", draft => wrongFirstCopy(draft, { kind: "viewer" }, true)),
  workScenario("challenge", draft => wrongFirstCopy(draft, { kind: "challenge" }, true)),
  workScenario("html-only", draft => wrongFirstCopy(draft, { kind: "viewer" }, false)),
  workScenario("cookie-loop", draft => wrongFirstCopy(draft, { kind: "cookie-loop" }, false)),
  workScenario("truncated-once", draft =>
    atPublisher(draft, { page: { kind: "pdf", manner: "truncated-once" }, via: CROSSREF_INDEXES }),
  ),
  workScenario("wrong-checksum", wrongChecksum),
  workScenario("archived", archived),
  workScenario("closed", closedAtPublisher),
  workScenario("closed", closedAtPublisher),
  workScenario("unknown-doi", unknownDoi),
];
