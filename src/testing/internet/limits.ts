/**
 * The limits that the services document or announce, as of November 2026, and their responses above a limit. A host
 * that publishes no limit has none here. `configs/networking/ratelimits.yaml` names the sources. A test checks that the
 * shipped policy stays within each of these limits.
 */
import { json, text, tooMany } from "./exchange.ts";
import type { EnforcedLimit } from "./limit-counter.ts";
import {
  crossref,
  hasBearer,
  hasOpenalexKey,
  ncbi,
  openaire,
  openalex,
  osf,
  retryAfter,
  semanticScholar,
  zenodo,
} from "./limit-pools.ts";

export const LIMITS: readonly EnforcedLimit[] = [
  crossref("public-single", "5/SECOND", 1),
  crossref("public-array", "1/SECOND", 1),
  crossref("polite-single", "10/SECOND", 3),
  crossref("polite-array", "3/SECOND", 3),
  openalex("no key", 1000, request => !hasOpenalexKey(request)),
  openalex("free key", 10_000, hasOpenalexKey),
  {
    name: "unpaywall",
    at: ["api.unpaywall.org"],
    rates: "100000/DAY",
    refuse: () => json({ HTTP_status_code: 429, error: true, message: "Too many requests today." }, 429),
  },
  {
    name: "arxiv",
    at: ["export.arxiv.org", "arxiv.org", "www.arxiv.org", "oaipmh.arxiv.org"],
    rates: "1/3SECOND",
    maxConcurrent: 1,
    refuse: () => text("Rate exceeded.", 429),
  },
  semanticScholar("semantic scholar, no key", "100/5MINUTE", request => request.headers["x-api-key"] === undefined),
  semanticScholar("semantic scholar, key", "1/SECOND", request => request.headers["x-api-key"] !== undefined),
  ncbi("ncbi, no key", "3/SECOND", request => request.query.get("api_key") === null),
  ncbi("ncbi, key", "10/SECOND", request => request.query.get("api_key") !== null),
  {
    name: "europe pmc",
    at: ["www.ebi.ac.uk/europepmc"],
    rates: "10/SECOND+500/MINUTE",
    refuse: () => tooMany(),
  },
  osf("osf, anonymous", "100/HOUR", request => !hasBearer(request)),
  osf("osf, token", "10000/DAY", hasBearer),
  zenodo("zenodo, guest", "60/MINUTE+2000/HOUR", request => !hasBearer(request)),
  zenodo("zenodo, token", "100/MINUTE+5000/HOUR", hasBearer),
  {
    name: "zenodo, search",
    at: ["zenodo.org/api/records"],
    applies: request => request.path.replace(/\/$/, "") === "/api/records",
    rates: "30/MINUTE",
    refuse: state => json({ status: 429, message: "30 per 1 minute" }, 429, retryAfter(state)),
  },
  {
    name: "figshare",
    at: ["api.figshare.com"],
    rates: "1/SECOND",
    refuse: () => json({ message: "Too many requests", code: 429 }, 429),
  },
  {
    name: "core",
    at: ["api.core.ac.uk"],
    rates: "5/10SECOND",
    announce: ({ limit, remaining, resetMs, wallMs }) => ({
      "x-ratelimit-limit": String(limit),
      "x-ratelimitremaining": String(remaining),
      "x-ratelimit-retry-after": new Date(wallMs + resetMs).toISOString(),
    }),
    refuse: () => json({ message: "Too many requests" }, 429),
  },
  { name: "doaj", at: ["doaj.org/api"], rates: "2/SECOND", refuse: () => tooMany("429 Too Many Requests") },
  openaire("openaire, anonymous", "60/HOUR", request => !hasBearer(request)),
  openaire("openaire, token", "7200/HOUR", hasBearer),
  {
    name: "wayback cdx",
    at: ["web.archive.org/cdx", "web.archive.org/web/timemap"],
    rates: "30/MINUTE",
    firewall: { afterMs: 60_000, forMs: 3_600_000 },
    refuse: () => tooMany(),
  },
  {
    name: "wayback replay",
    at: ["web.archive.org/web"],
    applies: ({ path }) => !path.startsWith("/web/timemap"),
    rates: "600/MINUTE",
    firewall: { afterMs: 60_000, forMs: 3_600_000 },
    refuse: () => tooMany(),
  },
  {
    name: "biorxiv files",
    at: ["www.biorxiv.org", "www.medrxiv.org"],
    rates: "1/7SECOND",
    refuse: () => text("error code: 1015", 429, { "retry-after": "24", server: "cloudflare" }),
  },
  {
    name: "datacite",
    at: ["api.datacite.org"],
    rates: "1000/5MINUTE",
    refuse: state => json({ errors: [{ status: "429", title: "Too many requests" }] }, 429, retryAfter(state)),
  },
  {
    name: "bioportal",
    at: ["data.bioontology.org"],
    rates: "15/SECOND",
    refuse: ({ limit, windowMs }) =>
      text("Too many requests\n", 429, {
        "ratelimit-limit": String(limit),
        "ratelimit-remaining": "0",
        "ratelimit-reset": String(windowMs / 1000),
      }),
  },
  {
    name: "github raw",
    at: ["raw.githubusercontent.com"],
    rates: "60/HOUR",
    refuse: () => text("429: Too Many Requests", 429),
  },
];
