import type { SimulatedWork } from "../catalogue.ts";
import { type CatalogueIndex, isKnownTo } from "../catalogue-index.ts";
import { json, type SimulatedReply, type SimulatedService } from "../exchange.ts";
import { guidOf } from "../repository-scenarios.ts";

const TYPE = {
  "content-type": "application/vnd.api+json; charset=utf-8",
  "cache-control": "no-cache, no-store, max-age=0, must-revalidate",
};

/** api.osf.io: preprints and their files, in JSON:API. */
export function osf(catalogue: CatalogueIndex): SimulatedService {
  const byGuid = new Map(
    catalogue.works.filter(work => isKnownTo(work, "osf")).map(work => [guidOf(work.record), work]),
  );
  return ({ path, query }) => {
    const [, kind, id = ""] = /^\/v2\/(preprints|files)\/([0-9a-z]+)(?:_v\d+)?\/$/.exec(path) ?? [];
    const work = byGuid.get(kind === "files" ? id.replace(/f$/, "") : id);
    if (kind === undefined || work === undefined) return notFound();
    const data = kind === "files" ? file(work) : preprint(work, query.get("embed") === "primary_file");
    return json({ data, meta: { version: "2.0" } }, 200, TYPE);
  };
}

function notFound(): SimulatedReply {
  return json({ errors: [{ detail: "Not found." }], meta: { version: "2.0" } }, 404, TYPE);
}

function preprint(work: SimulatedWork, isEmbedded: boolean) {
  const guid = guidOf(work.record);
  const href = `https://api.osf.io/v2/files/${guid}f/`;
  return {
    id: guid,
    type: "preprints",
    attributes: {
      title: work.title,
      doi: null,
      is_published: true,
      date_published: `${work.year}-04-01T08:00:00.000000`,
    },
    relationships: {
      primary_file: { links: { related: { href, meta: {} } }, data: { id: `${guid}f`, type: "files" } },
    },
    links: { html: `https://osf.io/${guid}/`, preprint_doi: `https://doi.org/${work.ids.doi}` },
    ...(isEmbedded ? { embeds: { primary_file: { data: file(work) } } } : {}),
  };
}

function file(work: SimulatedWork) {
  const guid = guidOf(work.record);
  const { bytes, md5, sha256 } = work.file;
  return {
    id: `${guid}f`,
    type: "files",
    attributes: {
      guid: `${guid}f`,
      name: "paper.pdf",
      kind: "file",
      size: bytes,
      provider: "osfstorage",
      extra: { hashes: { md5, sha256 }, downloads: 0 },
    },
    links: {
      info: `https://api.osf.io/v2/files/${guid}f/`,
      download: `https://osf.io/download/${guid}f/`,
      html: `https://osf.io/${guid}f`,
    },
  };
}
