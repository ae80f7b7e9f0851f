import { z } from "zod";
import { kindByAddress } from "../identifiers/web-url.ts";
import { findingOf, isDoiOf, verdictOf } from "./finding.ts";
import { anyOf, aside, listOf, readJson, text } from "./json-response.ts";
import { address } from "./request-url.ts";
import type { Resolver } from "./resolver.ts";

const right = z.object({ code: aside, label: aside }).nullish().catch(undefined);
const pids = anyOf(z.object({ scheme: aside, value: text }));
const result = z.object({
  mainTitle: aside,
  publicationDate: aside,
  bestAccessRight: right,
  pids,
  instances: anyOf(
    z.object({ urls: anyOf(z.string()), accessRight: right, license: aside, pids, alternateIdentifiers: pids }),
  ),
});
const page = z.object({ results: listOf(result, 25) });

export const openaire: Resolver = {
  name: "openaire",
  needs: [],
  ask({ ids: { doi } }) {
    if (doi === undefined) return undefined;
    return { url: address("https://api.openaire.eu/graph/v2/researchProducts", { pid: doi }), role: "metadata" };
  },
  read(answer, work) {
    const verdict = verdictOf(answer);
    if (verdict !== undefined) return verdict;
    const read = readJson(answer, page);
    if ("trouble" in read) return read.trouble;
    const hit = read.data.results.find(each =>
      [...each.pids, ...each.instances.flatMap(instance => [...instance.pids, ...instance.alternateIdentifiers])].some(
        ({ value }) => isDoiOf(work, value),
      ),
    );
    if (hit === undefined) return { kind: "none", reason: "unknown-work" };
    const open = hit.instances.filter(({ accessRight }) => isOpen(accessRight));
    const places = open.flatMap(({ urls, license }) =>
      urls.map(url => ({ url, kind: kindByAddress(url), licence: license })),
    );
    return findingOf(work, places, {
      otherwise: isOpen(hit.bestAccessRight) ? "no-copy" : "not-open",
      title: hit.mainTitle,
      year: hit.publicationDate,
    });
  },
};

/** `c_abf2` is "open access" in the vocabulary of COAR. */
function isOpen(access: z.infer<typeof right>): boolean {
  return access?.code === "c_abf2" || access?.label?.toUpperCase() === "OPEN";
}
