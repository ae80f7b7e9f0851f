import { z } from "zod";
import type { WorkIds } from "../work.ts";
import { documentsFirst, kindByName } from "./file-names.ts";
import { findingOf, md5, type Place, verdictOf } from "./finding.ts";
import { aside, listOf, readJson, text } from "./json-response.ts";
import type { Candidate, Question, Resolver } from "./resolver.ts";

const API = "https://api.osf.io/v2";

const file = z.object({
  type: z.literal("files"),
  attributes: z.object({
    name: z.string(),
    kind: aside,
    size: z.number().nullish(),
    extra: z
      .object({ hashes: z.object({ md5: aside, sha256: aside }).nullish() })
      .nullish()
      .catch(undefined),
  }),
  links: z.object({ download: text }),
});
const preprint = z.object({
  type: z.literal("preprints"),
  attributes: z.object({ title: aside, date_published: aside }),
  relationships: z
    .object({ primary_file: z.object({ links: z.object({ related: z.object({ href: text }) }) }).nullish() })
    .nullish(),
  embeds: z
    .object({ primary_file: z.object({ data: file }).nullish().catch(undefined) })
    .nullish()
    .catch(undefined),
});
const answered = z.object({ data: z.union([preprint, file, listOf(file)]) });

/** Preprints have one file that counts; projects and registrations a store of them. */
export const osf: Resolver = {
  name: "osf",
  needs: [],
  ask({ ids }) {
    const { guid, isProject } = guidOf(ids);
    if (guid === undefined) return undefined;
    return isProject ? storeOf("nodes", guid) : question(`preprints/${guid}/?embed=primary_file`);
  },
  read(answer, work) {
    const { guid } = guidOf(work.ids);
    // A DOI of a project and one of a registration look alike.
    const wasNode = answer.status === 404 && URL.parse(answer.url)?.pathname.startsWith("/v2/nodes/");
    if (wasNode && guid !== undefined) return { kind: "ask", question: storeOf("registrations", guid) };
    const verdict = verdictOf(answer);
    if (verdict !== undefined) return verdict;
    const read = readJson(answer, answered);
    if ("trouble" in read) return read.trouble;
    const { data } = read.data;
    if (Array.isArray(data)) return findingOf(work, placesOf(data), { otherwise: "no-copy" });
    if (data.type === "files") return findingOf(work, [placeOf(data)], { otherwise: "no-copy" });
    const embedded = data.embeds?.primary_file?.data;
    const about = { otherwise: "no-copy" as const, title: data.attributes.title, year: data.attributes.date_published };
    if (embedded !== undefined) return findingOf(work, [placeOf(embedded)], about);
    const id = /^https:\/\/api\.osf\.io\/v2\/files\/(\w+)\/?$/.exec(
      data.relationships?.primary_file?.links.related.href ?? "",
    )?.[1];
    return id === undefined ? { kind: "none", reason: "no-copy" } : { kind: "ask", question: question(`files/${id}/`) };
  },
};

function question(path: string): Question {
  return { url: `${API}/${path}`, role: "metadata" };
}

function storeOf(type: "nodes" | "registrations", guid: string): Question {
  return question(`${type}/${guid}/files/osfstorage/`);
}

/** `10.31219/osf.io/abcde_v1`, whatever the prefix: each of the preprint servers has its own; 10.17605 is for projects. */
function guidOf({ doi, url }: WorkIds): { readonly guid?: string | undefined; readonly isProject: boolean } {
  const ofDoi = /^(10\.\d+)\/osf\.io\/([a-z0-9]{5,12}(?:_v\d{1,4})?)$/.exec(doi ?? "");
  if (ofDoi !== null) return { guid: ofDoi[2], isProject: ofDoi[1] === "10.17605" };
  const ofUrl = /^https?:\/\/osf\.io\/preprints\/(?:\w+\/)?([a-z0-9]{5,12}(?:_v\d{1,4})?)\/?(?:\?|$)/.exec(url ?? "");
  return { guid: ofUrl?.[1], isProject: false };
}

function placesOf(files: readonly z.infer<typeof file>[]): readonly Place[] {
  const listed = files.filter(({ attributes }) => attributes.kind !== "folder");
  return documentsFirst(listed, ({ attributes: { name, size } }) => ({ name, bytes: size })).map(placeOf);
}

function placeOf({ attributes: { name, size, extra }, links }: z.infer<typeof file>): Place {
  return {
    url: links.download,
    kind: kindByName(name) ?? "pdf",
    checksum: sha256(extra?.hashes?.sha256) ?? md5(extra?.hashes?.md5),
    bytes: size ?? undefined,
  };
}

function sha256(hex: string | null | undefined): Candidate["checksum"] {
  return /^[0-9a-f]{64}$/i.test(hex ?? "") ? { algorithm: "sha256", hex: String(hex).toLowerCase() } : undefined;
}
