/**
 * What befalls those who look for a work: which services know it, where copies lie, and which of those are traps.
 * A tale is told anew for each work, with dice of its own.
 */
import type { Copy, ServiceName, SimulatedIds } from "./catalogue.ts";
import type { Dice } from "./dice.ts";
import type { Hint, Page } from "./page.ts";

export type Story = (typeof TALES)[number]["story"];

export interface Draft {
  readonly dice: Dice;
  /** Six digits, one for each work. */
  readonly number: number;
  readonly year: number;
}

export interface Told {
  readonly ids: SimulatedIds;
  readonly registrar: "crossref" | "datacite" | "none";
  readonly landing: string | undefined;
  readonly copies: readonly Copy[];
  readonly pages: readonly (readonly [url: string, page: Page])[];
}

export interface Tale {
  readonly story: string;
  readonly tell: (draft: Draft) => Told;
}

const PUBLISHERS = [
  "www.northlight-journals.example",
  "journals.harbourpress.example",
  "www.meridian-science.example",
  "articles.kestrel.example",
] as const;
const REPOSITORIES = ["eprints.lakeside.example", "dspace.hillford.example"] as const;
const CDN = "cdn.papermill.example";
const LINK_HOP = "links.papermill.example";

/** Hosts that no service table names: where publishers and universities keep their pages and files. */
export const PAGE_HOSTS: readonly string[] = [...PUBLISHERS, ...REPOSITORIES, CDN, LINK_HOP];

const EVERYONE: readonly ServiceName[] = ["crossref", "openalex", "unpaywall", "semantic_scholar"];

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
  tale("pmc", draft => inPmc(draft, ["pmc", "europe_pmc"])),
  tale("pmc", draft => inPmc(draft, ["pmc"])),
  tale("pmc", draft => inPmc(draft, ["pmc", "europe_pmc", "openalex", "unpaywall"])),
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
  tale("closed", closed),
  tale("closed", closed),
  tale("unknown-doi", unknownDoi),
] as const satisfies readonly Tale[];

function publisherOf({ dice, number, year }: Draft) {
  const host = dice.pick(PUBLISHERS);
  const doi = `10.5555/${host.split(".")[1]?.slice(0, 4)}.${year}.${number}`;
  const landing = `https://${host}/article/${number}`;
  return { host, doi, landing, pdf: `${landing}/pdf` };
}

function copy(url: string, via: readonly ServiceName[], more: Partial<Copy> = {}): Copy {
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

const IN_REPOSITORY = { hostType: "repository", version: "acceptedVersion", licence: null } as const;

function atPublisher(draft: Draft, { page, via }: { page: Page; via: readonly ServiceName[] }): Told {
  const { doi, landing, pdf } = publisherOf(draft);
  const article: Page = { kind: "article", pdf, hints: ["citation-meta"] };
  return {
    ids: { doi },
    registrar: "crossref",
    landing,
    copies: [copy(pdf, [...via, "landing_page"])],
    pages: [
      [landing, article],
      [pdf, page],
    ],
  };
}

/** Closed at the publisher's, so that only what the others name is left. */
function closedAtPublisher(draft: Draft): Told {
  const { doi, landing } = publisherOf(draft);
  return {
    ids: { doi },
    registrar: "crossref",
    landing,
    copies: [],
    pages: [[landing, { kind: "article", pdf: undefined, hints: [] }]],
  };
}

function onArxiv(draft: Draft, prefix: "10.48550" | "10.5555"): Told {
  const month = String(draft.dice.between(1, 12)).padStart(2, "0");
  const arxiv = `${String(draft.year).slice(2)}${month}.${String(draft.number).slice(-5)}`;
  const pdf = `https://arxiv.org/pdf/${arxiv}`;
  const told = closedAtPublisher(draft);
  const isOwnDoi = prefix === "10.48550";
  return {
    ids: { arxiv, doi: isOwnDoi ? `10.48550/arxiv.${arxiv}` : (told.ids.doi ?? "") },
    registrar: isOwnDoi ? "datacite" : "crossref",
    landing: isOwnDoi ? `https://arxiv.org/abs/${arxiv}` : told.landing,
    // Unpaywall knows the DOIs of Crossref alone.
    copies: [
      copy(pdf, isOwnDoi ? ["arxiv", "openalex"] : ["arxiv", "openalex", "unpaywall"], {
        ...IN_REPOSITORY,
        version: "submittedVersion",
      }),
    ],
    pages: [
      ...told.pages,
      [pdf, { kind: "pdf", manner: "bare" }],
      [`https://export.arxiv.org/pdf/${arxiv}`, { kind: "pdf", manner: "bare" }],
      [`https://arxiv.org/abs/${arxiv}`, { kind: "article", pdf, hints: ["citation-meta"] }],
    ],
  };
}

function inPmc(draft: Draft, via: readonly ServiceName[]): Told {
  const told = closedAtPublisher(draft);
  const pmcid = `PMC${draft.number + 9_000_000}`;
  const key = `${pmcid}.1`;
  const url = `https://pmc-oa-opendata.s3.amazonaws.com/${key}/${key}.pdf`;
  const ids = { ...told.ids, pmcid, pmid: String(draft.number + 30_000_000) };
  const pages: Told["pages"] = [...told.pages, [url, { kind: "pdf" }]];
  return { ...told, ids, copies: [copy(url, via, { hostType: "repository" })], pages };
}

function zenodo(draft: Draft): Told {
  const landing = `https://zenodo.org/records/${draft.number}`;
  const url = `https://zenodo.org/api/records/${draft.number}/files/paper.pdf/content`;
  return {
    ids: { doi: `10.5281/zenodo.${draft.number}` },
    registrar: "datacite",
    landing,
    copies: [copy(url, ["zenodo"], { hostType: "repository" })],
    pages: [
      [landing, { kind: "article", pdf: `${landing}/files/paper.pdf`, hints: ["signposting"] }],
      [`${landing}/files/paper.pdf`, { kind: "pdf" }],
      [url, { kind: "pdf", manner: "bare" }],
    ],
  };
}

function wrongChecksum(draft: Draft): Told {
  const told = zenodo(draft);
  const bad = told.copies.map(each => ({ ...each, isGood: false }));
  return { ...told, copies: bad, pages: told.pages.filter(([url]) => url.includes("/api/")) };
}

function figshare(draft: Draft): Told {
  const landing = `https://figshare.com/articles/${draft.number}`;
  const file = draft.number + 40_000_000;
  const url = `https://api.figshare.com/v2/file/download/${file}`;
  const signed = `https://s3-eu-west-1.amazonaws.com/pfigshare-u-files/${file}/paper.pdf?X-Amz-Signature=${file}a%2Fb`;
  return {
    ids: { doi: `10.6084/m9.figshare.${draft.number}` },
    registrar: "datacite",
    landing,
    copies: [copy(url, ["figshare"], { hostType: "repository" })],
    pages: [
      [landing, { kind: "article", pdf: undefined, hints: [] }],
      [`https://figshare.com/ndownloader/files/${file}`, { kind: "empty-202" }],
      [url, { kind: "redirect", to: signed }],
      [signed, { kind: "pdf" }],
    ],
  };
}

/** Five letters and digits, as OSF names things. */
export function guidOf(number: number): string {
  return number.toString(36).padStart(5, "o").slice(-5);
}

function osf(draft: Draft): Told {
  const guid = guidOf(draft.number);
  const landing = `https://osf.io/${guid}/`;
  const url = `https://osf.io/download/${guid}f/`;
  const stored = `https://files.us.osf.io/v1/resources/${guid}/providers/osfstorage/${guid}f`;
  return {
    ids: { doi: `10.31219/osf.io/${guid}` },
    registrar: "crossref",
    landing,
    copies: [copy(url, ["osf"], { hostType: "repository", version: "submittedVersion" })],
    pages: [
      [landing, { kind: "article", pdf: undefined, hints: [] }],
      [url, { kind: "redirect", to: stored }],
      [stored, { kind: "pdf", manner: "attachment" }],
    ],
  };
}

function biorxiv(draft: Draft): Told {
  const doi = `10.1101/${draft.year}.03.14.${draft.number}`;
  const landing = `https://www.biorxiv.org/content/${doi}v1`;
  const url = `${landing}.full.pdf`;
  return {
    ids: { doi },
    registrar: "crossref",
    landing,
    copies: [copy(url, ["biorxiv", "unpaywall", "landing_page"], { ...IN_REPOSITORY, version: "submittedVersion" })],
    pages: [
      [landing, { kind: "article", pdf: url, hints: ["citation-meta"] }],
      [url, { kind: "pdf" }],
    ],
  };
}

function inRepository(draft: Draft, host: string, path: (number: number) => string, via: readonly ServiceName[]): Told {
  const told = closedAtPublisher(draft);
  const url = `https://${host}${path(draft.number)}`;
  return { ...told, copies: [copy(url, via, IN_REPOSITORY)], pages: [...told.pages, [url, { kind: "pdf" }]] };
}

/** Only the article's page names the file; the services name the page at best. */
function onLandingPage(draft: Draft, hints: readonly Hint[]): Told {
  const { doi, landing, pdf } = publisherOf(draft);
  return {
    ids: { doi },
    registrar: "crossref",
    landing,
    copies: [
      copy(pdf, ["landing_page"]),
      copy(landing, ["unpaywall", "openalex", "doaj", "openaire"], { kind: "landing", isGood: false }),
    ],
    pages: [
      [landing, { kind: "article", pdf, hints }],
      [pdf, { kind: "pdf" }],
    ],
  };
}

function redirectChain(draft: Draft): Told {
  const { doi, landing, pdf } = publisherOf(draft);
  const hop = `https://${LINK_HOP}/to/${draft.number}`;
  const plain = `http://${LINK_HOP}/old/${draft.number}`;
  const end = `https://${CDN}/${draft.number}/article.pdf?token=${draft.number}%2Bx`;
  return {
    ids: { doi },
    registrar: "crossref",
    landing,
    copies: [copy(pdf, [...EVERYONE, "landing_page"])],
    pages: [
      [landing, { kind: "article", pdf, hints: ["citation-meta"] }],
      [pdf, { kind: "redirect", to: plain, status: 301 }],
      [plain, { kind: "redirect", to: hop, status: 307 }],
      [hop, { kind: "redirect", to: end }],
      [end, { kind: "pdf" }],
    ],
  };
}

/** The first copy that everybody names is a trap; a second lies in a repository, or nowhere. */
function trapped(draft: Draft, page: Page, hasAnother: boolean): Told {
  const { doi, landing, pdf } = publisherOf(draft);
  const other = `https://${draft.dice.pick(REPOSITORIES)}/bitstream/${draft.number}/paper.pdf`;
  const first = copy(pdf, [...EVERYONE, "landing_page"], { isGood: false });
  const second = copy(other, ["unpaywall", "openalex", "core"], IN_REPOSITORY);
  return {
    ids: { doi },
    registrar: "crossref",
    landing,
    copies: hasAnother ? [first, second] : [first],
    pages: [
      [landing, { kind: "article", pdf, hints: ["citation-meta"] }],
      [pdf, page],
      [`${pdf}?cookieAbsent=0`, page],
      [`${pdf}?cookieAbsent=1`, page],
      ...(hasAnother ? [[other, { kind: "pdf" }] as const] : []),
    ],
  };
}

/** The publisher's copy is gone, and the archive has kept it. */
function archived(draft: Draft): Told {
  const { doi, landing, pdf } = publisherOf(draft);
  const capture = `https://web.archive.org/web/${draft.year}0401120000id_/${pdf}`;
  return {
    ids: { doi },
    registrar: "crossref",
    landing,
    copies: [copy(pdf, EVERYONE, { isGood: false }), copy(capture, ["wayback"])],
    pages: [
      [landing, { kind: "gone" }],
      [pdf, { kind: "gone" }],
      [capture, { kind: "pdf", manner: "bare" }],
    ],
  };
}

function closed(draft: Draft): Told {
  return closedAtPublisher(draft);
}

function unknownDoi(draft: Draft): Told {
  return {
    ids: { doi: `10.5555/nowhere.${draft.number}` },
    registrar: "none",
    landing: undefined,
    copies: [],
    pages: [],
  };
}
