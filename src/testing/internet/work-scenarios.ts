/**
 * What befalls those who look for a work: which services know it, where copies lie, and which of those are traps.
 * A tale is told anew for each work, with dice of its own.
 */
import {
  archived,
  atPublisher,
  CDN,
  EVERYONE,
  LINK_HOP,
  onLandingPage,
  redirectChain,
  trapped,
  unknownDoi,
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
import { closedAtPublisher, type Draft, PUBLISHERS, REPOSITORIES, type Told } from "./scenario-work.ts";

export type Story = (typeof TALES)[number]["story"];

export interface Tale {
  readonly story: string;
  readonly tell: (draft: Draft) => Told;
}

/** Hosts that no service table names: where publishers and universities keep their pages and files. */
export const PAGE_HOSTS: readonly string[] = [...PUBLISHERS, ...REPOSITORIES, CDN, LINK_HOP];

function tale<const Name extends string>(story: Name, tell: (draft: Draft) => Told) {
  return { story, tell };
}

/** In the proportions in which they are met; some are here several times. */
export const TALES = [
  tale("publisher", draft => atPublisher(draft, { page: { kind: "pdf" }, via: EVERYONE })),
  tale("publisher", draft => atPublisher(draft, { page: { kind: "pdf" }, via: [...EVERYONE, "doaj", "openaire"] })),
  tale("publisher", draft => atPublisher(draft, { page: { kind: "pdf", manner: "bare" }, via: ["crossref"] })),
  tale("publisher", draft => atPublisher(draft, { page: { kind: "pdf" }, via: ["openalex"] })),
  tale("attachment", draft => atPublisher(draft, { page: { kind: "pdf", manner: "attachment" }, via: EVERYONE })),
  tale("arxiv", draft => onArxiv(draft, "10.48550")),
  tale("arxiv", draft => onArxiv(draft, "10.5555")),
  tale("pmc", draft => inPmc(draft, ["pmc"])),
  tale("pmc", draft => inPmc(draft, ["pmc"])),
  tale("pmc", draft => inPmc(draft, ["pmc", "openalex", "unpaywall"])),
  tale("europe-pmc", inEuropePmc),
  tale("zenodo", zenodo),
  tale("figshare", figshare),
  tale("osf", osf),
  tale("biorxiv", biorxiv),
  tale("hal", draft => inRepository(draft, "hal.science", n => `/hal-0${n}/document`, ["hal", "openaire"])),
  tale("core", draft => inRepository(draft, "core.ac.uk", n => `/download/${n}.pdf`, ["core", "semantic_scholar"])),
  tale("repository", draft =>
    inRepository(draft, draft.dice.pick(REPOSITORIES), n => `/id/eprint/${n}/1/paper.pdf`, ["unpaywall", "openalex"]),
  ),
  tale("signposting", draft => onLandingPage(draft, ["signposting"])),
  tale("citation-meta", draft => onLandingPage(draft, ["citation-meta", "json-ld"])),
  tale("alternate-link", draft => onLandingPage(draft, ["alternate"])),
  tale("redirect-chain", redirectChain),
  tale("html-instead", draft => trapped(draft, { kind: "viewer" }, true)),
  tale("challenge", draft => trapped(draft, { kind: "challenge" }, true)),
  tale("html-only", draft => trapped(draft, { kind: "viewer" }, false)),
  tale("cookie-loop", draft => trapped(draft, { kind: "cookie-loop" }, false)),
  tale("truncated-once", draft =>
    atPublisher(draft, { page: { kind: "pdf", manner: "truncated-once" }, via: EVERYONE }),
  ),
  tale("wrong-checksum", wrongChecksum),
  tale("archived", archived),
  tale("closed", closedAtPublisher),
  tale("closed", closedAtPublisher),
  tale("unknown-doi", unknownDoi),
] as const satisfies readonly Tale[];
