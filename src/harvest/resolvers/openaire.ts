import { z } from "zod";
import { kindByUrl } from "../identifiers/web-url.ts";
import { findingForStatus, findingOf, matchesDoi } from "./finding.ts";
import { lenientText, listOf, optionalListOf, optionalText, readJson } from "./json-response.ts";
import { urlWithQuery } from "./request-url.ts";
import type { Resolver } from "./resolver.ts";

const right = z.object({ code: lenientText, label: lenientText }).nullish().catch(undefined);
const pids = optionalListOf(z.object({ scheme: lenientText, value: optionalText }));
const result = z.object({
  mainTitle: lenientText,
  publicationDate: lenientText,
  bestAccessRight: right,
  pids,
  instances: optionalListOf(
    z.object({
      urls: optionalListOf(z.string()),
      accessRight: right,
      license: lenientText,
      pids,
      alternateIdentifiers: pids,
    }),
  ),
});
const page = z.object({ results: listOf(result, 25) });

export const openaire: Resolver = {
  name: "openaire",
  needs: [],
  requestFor({ ids: { doi } }) {
    if (doi === undefined) return undefined;
    return { url: urlWithQuery("https://api.openaire.eu/graph/v2/researchProducts", { pid: doi }), role: "metadata" };
  },
  parse(response, work) {
    const statusFinding = findingForStatus(response, "service");
    if (statusFinding !== undefined) return statusFinding;
    const parsed = readJson(response, page);
    if ("failure" in parsed) return parsed.failure;
    const hit = parsed.data.results.find(each =>
      [...each.pids, ...each.instances.flatMap(instance => [...instance.pids, ...instance.alternateIdentifiers])].some(
        ({ value }) => matchesDoi(work, value),
      ),
    );
    if (hit === undefined) return { kind: "none", reason: "unknown-work" };
    const open = hit.instances.filter(({ accessRight }) => isOpen(accessRight));
    const rawCandidates = open.flatMap(({ urls, license }) =>
      urls.map(url => ({ url, kind: kindByUrl(url), licence: license })),
    );
    return findingOf(work, rawCandidates, {
      noneReason: isOpen(hit.bestAccessRight) ? "no-copy" : "not-open",
      metadata: { title: hit.mainTitle, year: hit.publicationDate },
    });
  },
};

/** `c_abf2` is "open access" in the COAR vocabulary. */
function isOpen(access: z.infer<typeof right>): boolean {
  return access?.code === "c_abf2" || access?.label?.toUpperCase() === "OPEN";
}
