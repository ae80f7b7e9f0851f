/** Scenarios of works whose file is in a repository or on a preprint server. */
import type { ServiceName } from "./copy.ts";
import {
  closedAtPublisher,
  copy,
  IN_REPOSITORY,
  REPOSITORIES,
  type ScenarioDraft,
  type ScenarioWork,
} from "./scenario-work.ts";

export function onArxiv(draft: ScenarioDraft, prefix: "10.48550" | "10.5555"): ScenarioWork {
  const month = String(draft.random.between(1, 12)).padStart(2, "0");
  const arxiv = `${String(draft.year).slice(2)}${month}.${String(draft.number).slice(-5)}`;
  const pdf = `https://arxiv.org/pdf/${arxiv}`;
  const base = closedAtPublisher(draft);
  const isOwnDoi = prefix === "10.48550";
  return {
    ids: { arxiv, doi: isOwnDoi ? `10.48550/arxiv.${arxiv}` : (base.ids.doi ?? "") },
    registrar: isOwnDoi ? "datacite" : "crossref",
    landing: isOwnDoi ? `https://arxiv.org/abs/${arxiv}` : base.landing,
    // Unpaywall knows only DOIs registered at Crossref.
    copies: [
      copy(pdf, isOwnDoi ? ["arxiv", "openalex"] : ["arxiv", "openalex", "unpaywall"], {
        ...IN_REPOSITORY,
        version: "submittedVersion",
      }),
    ],
    pages: [
      ...base.pages,
      [pdf, { kind: "pdf", manner: "bare" }],
      [`https://export.arxiv.org/pdf/${arxiv}`, { kind: "pdf", manner: "bare" }],
      [`https://arxiv.org/abs/${arxiv}`, { kind: "article", pdf, hints: ["citation-meta"] }],
    ],
  };
}

/** Europe PMC also names its own rendering of the file, which has returned errors since March 2026. */
export function inPmc(draft: ScenarioDraft, via: readonly ServiceName[]): ScenarioWork {
  const base = closedAtPublisher(draft);
  const pmcid = `PMC${draft.number + 9_000_000}`;
  const key = `${pmcid}.1`;
  const url = `https://pmc-oa-opendata.s3.amazonaws.com/${key}/${key}.pdf`;
  const rendered = `https://europepmc.org/articles/${pmcid}?pdf=render`;
  const repository = { hostType: "repository" } as const;
  return {
    ...base,
    ids: { ...base.ids, pmcid, pmid: pmidOf(draft) },
    copies: [copy(url, via, repository), copy(rendered, ["europe_pmc"], { ...repository, isGood: false })],
    pages: [...base.pages, [url, { kind: "pdf" }], [rendered, { kind: "gone" }]],
  };
}

function pmidOf({ number }: ScenarioDraft): string {
  return String(number + 30_000_000);
}

/** The work is not in the bucket of PMC, but Europe PMC names a copy in a repository. */
export function inEuropePmc(draft: ScenarioDraft): ScenarioWork {
  const base = inRepository(draft, REPOSITORIES[0], n => `/id/eprint/${n}/1/accepted.pdf`, ["europe_pmc"]);
  return { ...base, ids: { ...base.ids, pmid: pmidOf(draft) } };
}

export function zenodo(draft: ScenarioDraft): ScenarioWork {
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

/** The file at Zenodo does not have the checksum that its API reports, and neither a service nor a page names a copy. */
export function wrongChecksum(draft: ScenarioDraft): ScenarioWork {
  const base = zenodo(draft);
  const bad = base.copies.map(each => ({ ...each, isGood: false }));
  return { ...base, copies: bad, pages: base.pages.filter(([url]) => url !== base.landing) };
}

export function figshare(draft: ScenarioDraft): ScenarioWork {
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

/** An OSF id: five letters and digits. */
export function guidOf(number: number): string {
  return number.toString(36).padStart(5, "o").slice(-5);
}

export function osf(draft: ScenarioDraft): ScenarioWork {
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

export function biorxiv(draft: ScenarioDraft): ScenarioWork {
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

export function inRepository(
  draft: ScenarioDraft,
  host: string,
  path: (number: number) => string,
  via: readonly ServiceName[],
): ScenarioWork {
  const base = closedAtPublisher(draft);
  const url = `https://${host}${path(draft.number)}`;
  return { ...base, copies: [copy(url, via, IN_REPOSITORY)], pages: [...base.pages, [url, { kind: "pdf" }]] };
}
