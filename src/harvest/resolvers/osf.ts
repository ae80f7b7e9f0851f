import { z } from "zod";
import type { WorkIds } from "../work.ts";
import { candidatesByName, kindByName, type NamedFile } from "./file-names.ts";
import { findingForStatus, findingOf, md5Checksum, type RawCandidate } from "./finding.ts";
import { lenientText, listOf, optionalText, readJson } from "./json-response.ts";
import { urlWithQuery } from "./request-url.ts";
import type { Candidate, Resolver, ResolverRequest } from "./resolver.ts";

const API = "https://api.osf.io/v2";

const file = z.object({
  type: z.literal("files"),
  attributes: z.object({
    name: z.string(),
    kind: lenientText,
    size: z.number().nullish(),
    extra: z
      .object({ hashes: z.object({ md5: lenientText, sha256: lenientText }).nullish() })
      .nullish()
      .catch(undefined),
  }),
  links: z.object({ download: optionalText }),
});
const preprint = z.object({
  type: z.literal("preprints"),
  attributes: z.object({ title: lenientText, date_published: lenientText }),
  relationships: z
    .object({ primary_file: z.object({ links: z.object({ related: z.object({ href: optionalText }) }) }).nullish() })
    .nullish(),
  embeds: z
    .object({ primary_file: z.object({ data: file }).nullish().catch(undefined) })
    .nullish()
    .catch(undefined),
});
const responseSchema = z.object({ data: z.union([preprint, file, listOf(file)]) });

/** A preprint has one primary file; projects and registrations have a list of files. */
export const osf: Resolver = {
  name: "osf",
  needs: [],
  isRepository: true,
  requestFor({ ids }) {
    const { guid, isProject } = guidOf(ids);
    if (guid === undefined) return undefined;
    return isProject ? filesRequest("nodes", guid) : request(`preprints/${guid}/?embed=primary_file`);
  },
  parse(response, work) {
    const { guid } = guidOf(work.ids);
    // DOIs of projects and registrations look alike.
    const wasNode = response.status === 404 && URL.parse(response.url)?.pathname.startsWith("/v2/nodes/");
    if (wasNode && guid !== undefined) return { kind: "follow-up", request: filesRequest("registrations", guid) };
    const statusFinding = findingForStatus(response);
    if (statusFinding !== undefined) return statusFinding;
    const parsed = readJson(response, responseSchema);
    if ("failure" in parsed) return parsed.failure;
    const { data } = parsed.data;
    if (Array.isArray(data)) {
      const files = data.filter(({ attributes }) => attributes.kind !== "folder").map(namedFile);
      return findingOf(work, candidatesByName(files), { noneReason: "no-copy" });
    }
    if (data.type === "files") return findingOf(work, [rawCandidateOf(data)], { noneReason: "no-copy" });
    const embedded = data.embeds?.primary_file?.data;
    const details = {
      noneReason: "no-copy" as const,
      metadata: { title: data.attributes.title, year: data.attributes.date_published },
    };
    if (embedded !== undefined) return findingOf(work, [rawCandidateOf(embedded)], details);
    const id = /^https:\/\/api\.osf\.io\/v2\/files\/(\w+)\/?$/.exec(
      data.relationships?.primary_file?.links.related.href ?? "",
    )?.[1];
    return id === undefined
      ? { kind: "none", reason: "no-copy" }
      : { kind: "follow-up", request: request(`files/${id}/`) };
  },
};

function request(path: string): ResolverRequest {
  return { url: `${API}/${path}`, role: "metadata" };
}

/** The files of a project or registration. A page of the list has 10 files by default, and 100 at most. */
function filesRequest(type: "nodes" | "registrations", guid: string): ResolverRequest {
  return { url: urlWithQuery(`${API}/${type}/${guid}/files/osfstorage/`, { "page[size]": "100" }), role: "metadata" };
}

/**
 * `10.31219/osf.io/abcde_v1`: each preprint server has its own prefix; 10.17605 is for projects. `https://osf.io/abcde/` is
 * a project or registration.
 */
function guidOf({ doi, url }: WorkIds): { readonly guid?: string | undefined; readonly isProject: boolean } {
  const ofDoi = /^(10\.\d+)\/osf\.io\/([a-z0-9]{5,12}(?:_v\d{1,4})?)$/.exec(doi ?? "");
  if (ofDoi !== null) return { guid: ofDoi[2], isProject: ofDoi[1] === "10.17605" };
  const ofUrl = /^https?:\/\/osf\.io\/preprints\/(?:\w+\/)?([a-z0-9]{5,12}(?:_v\d{1,4})?)\/?(?:\?|$)/.exec(url ?? "");
  if (ofUrl !== null) return { guid: ofUrl[1], isProject: false };
  const ofNode = /^https?:\/\/osf\.io\/([a-z0-9]{5})\/?(?:\?|$)/.exec(url ?? "");
  return { guid: ofNode?.[1], isProject: true };
}

function namedFile({ attributes: { name, size, extra }, links }: z.infer<typeof file>): NamedFile {
  return {
    name,
    url: links.download,
    checksum: sha256(extra?.hashes?.sha256) ?? md5Checksum(extra?.hashes?.md5),
    bytes: size ?? undefined,
  };
}

/** The file of a preprint is its document, whatever its name is. */
function rawCandidateOf(data: z.infer<typeof file>): RawCandidate {
  return { ...namedFile(data), kind: kindByName(data.attributes.name) ?? "pdf" };
}

function sha256(hex: string | null | undefined): Candidate["checksum"] {
  return /^[0-9a-f]{64}$/i.test(hex ?? "") ? { algorithm: "sha256", hex: String(hex).toLowerCase() } : undefined;
}
