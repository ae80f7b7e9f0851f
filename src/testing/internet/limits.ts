/**
 * The limits that the services document or announce, as of November 2026, and what they say when one is exceeded.
 * Hosts that publish none have none here. `configs/networking/ratelimits.yaml` names the sources; a test sees to it that
 * what we ship keeps within every one of these.
 */
import { html, json, type Reply, text, type Visit } from "./exchange.ts";
import type { EnforcedLimit, Standing } from "./limit-count.ts";

export const LIMITS: readonly EnforcedLimit[] = [
  crossref("public-single", "5/SECOND", 1),
  crossref("public-array", "1/SECOND", 1),
  crossref("polite-single", "10/SECOND", 3),
  crossref("polite-array", "3/SECOND", 3),
  openalex("no key", 1000, visit => !hasOpenalexKey(visit)),
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
  semanticScholar("semantic scholar, no key", "100/5MINUTE", visit => visit.headers["x-api-key"] === undefined),
  semanticScholar("semantic scholar, key", "1/SECOND", visit => visit.headers["x-api-key"] !== undefined),
  ncbi("ncbi, no key", "3/SECOND", visit => visit.query.get("api_key") === null),
  ncbi("ncbi, key", "10/SECOND", visit => visit.query.get("api_key") !== null),
  {
    name: "europe pmc",
    at: ["www.ebi.ac.uk/europepmc"],
    rates: "10/SECOND+500/MINUTE",
    refuse: () => tooMany("Too Many Requests"),
  },
  osf("osf, anonymous", "100/HOUR", visit => !hasBearer(visit)),
  osf("osf, token", "10000/DAY", hasBearer),
  zenodo("zenodo, guest", "60/MINUTE+2000/HOUR", visit => !hasBearer(visit)),
  zenodo("zenodo, token", "100/MINUTE+5000/HOUR", hasBearer),
  {
    name: "zenodo, search",
    at: ["zenodo.org/api/records"],
    applies: visit => visit.path.replace(/\/$/, "") === "/api/records",
    rates: "30/MINUTE",
    refuse: standing => json({ status: 429, message: "30 per 1 minute" }, 429, retryAfter(standing)),
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
  openaire("openaire, anonymous", "60/HOUR", visit => !hasBearer(visit)),
  openaire("openaire, token", "7200/HOUR", hasBearer),
  {
    name: "wayback cdx",
    at: ["web.archive.org/cdx", "web.archive.org/web/timemap"],
    rates: "30/MINUTE",
    firewall: { afterMs: 60_000, forMs: 3_600_000 },
    refuse: () => tooMany("Too Many Requests"),
  },
  {
    name: "wayback replay",
    at: ["web.archive.org/web"],
    applies: ({ path }) => !path.startsWith("/web/timemap"),
    rates: "600/MINUTE",
    firewall: { afterMs: 60_000, forMs: 3_600_000 },
    refuse: () => tooMany("Too Many Requests"),
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
    refuse: standing => json({ errors: [{ status: "429", title: "Too many requests" }] }, 429, retryAfter(standing)),
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

/** Which pool a request falls into: with a mail address or without, for one record or for a list of them. */
function crossrefPool({ path, query, headers }: Visit): string {
  const isPolite = query.get("mailto") !== null || /mailto:/i.test(headers["user-agent"] ?? "");
  const isSingle = /^(?:\/v1)?\/works\/./.test(path);
  return `${isPolite ? "polite" : "public"}-${isSingle ? "single" : "array"}`;
}

function crossref(pool: string, rates: string, maxConcurrent: number): EnforcedLimit {
  return {
    name: `crossref ${pool}`,
    at: ["api.crossref.org"],
    applies: visit => crossrefPool(visit) === pool,
    rates,
    maxConcurrent,
    announce: ({ limit, maxConcurrent: concurrent }) => ({
      "x-rate-limit-limit": String(limit),
      "x-rate-limit-interval": "1s",
      "x-concurrency-limit": String(concurrent),
      "x-api-pool": pool,
    }),
    refuse: () => tooMany("Too Many Requests"),
  };
}

function hasOpenalexKey({ query, headers }: Visit): boolean {
  return query.get("api_key") !== null || headers["api_key"] !== undefined;
}

/** One credit is 1/10 000 of a dollar. Searches by words cost ten, a file a hundred. */
function openalexCost({ host, query }: Visit): number {
  if (host === "content.openalex.org") return 100;
  return query.get("search") !== null || /\bsearch:/.test(query.get("filter") ?? "") ? 10 : 1;
}

function openalex(name: string, credits: number, applies: (visit: Visit) => boolean): EnforcedLimit {
  const usd = (count: number) => String(count / 10_000);
  return {
    name: `openalex, ${name}`,
    at: ["api.openalex.org", "content.openalex.org"],
    applies,
    rates: "100/SECOND",
    dailyCredits: { credits, cost: openalexCost },
    announce: ({ creditsLeft, creditsUsed, midnightMs }) => ({
      "x-ratelimit-limit": String(credits),
      "x-ratelimit-remaining": String(Math.max(0, creditsLeft)),
      "x-ratelimit-credits-used": String(creditsUsed),
      "x-ratelimit-onetime-remaining": "0",
      "x-ratelimit-reset": String(Math.ceil(midnightMs / 1000)),
      "x-ratelimit-limit-usd": usd(credits),
      "x-ratelimit-remaining-usd": usd(Math.max(0, creditsLeft)),
      "x-ratelimit-cost-usd": usd(creditsUsed),
    }),
    refuse: ({ isOutOfCredits, midnightMs }) =>
      json(
        {
          error: "Rate limit exceeded",
          message: isOutOfCredits
            ? "Insufficient budget. Your budget resets at midnight UTC."
            : "Too many requests per second.",
        },
        429,
        { "retry-after": isOutOfCredits ? String(Math.ceil(midnightMs / 1000)) : "1" },
      ),
  };
}

function semanticScholar(name: string, rates: string, applies: (visit: Visit) => boolean): EnforcedLimit {
  const message = "Too Many Requests. Please wait and try again or apply for a key for higher rate limits.";
  return { name, at: ["api.semanticscholar.org"], applies, rates, refuse: () => json({ message, code: "429" }, 429) };
}

function ncbi(name: string, rates: string, applies: (visit: Visit) => boolean): EnforcedLimit {
  return {
    name,
    at: ["eutils.ncbi.nlm.nih.gov", "pmc.ncbi.nlm.nih.gov/tools", "pmc.ncbi.nlm.nih.gov/api"],
    applies,
    rates,
    announce: ({ limit, remaining }) => ({
      "x-ratelimit-limit": String(limit),
      "x-ratelimit-remaining": String(remaining),
    }),
    refuse: ({ limit }) =>
      json(
        { error: "API rate limit exceeded", "api-key": "192.0.2.1", count: String(limit + 1), limit: String(limit) },
        429,
      ),
  };
}

function osf(name: string, rates: string, applies: (visit: Visit) => boolean): EnforcedLimit {
  return {
    name,
    at: ["api.osf.io"],
    applies,
    rates,
    refuse: standing => {
      const detail = `Request was throttled. Expected available in ${Math.ceil(standing.resetMs / 1000)} seconds.`;
      return json({ errors: [{ detail }], meta: { version: "2.0" } }, 429, retryAfter(standing));
    },
  };
}

function zenodo(name: string, rates: string, applies: (visit: Visit) => boolean): EnforcedLimit {
  return {
    name,
    at: ["zenodo.org"],
    applies,
    rates,
    // It sends Retry-After with every answer, good ones included, and Reset in seconds of the epoch.
    announce: standing => ({
      "x-ratelimit-limit": String(standing.limit),
      "x-ratelimit-remaining": String(standing.remaining),
      "x-ratelimit-reset": String(Math.ceil((standing.wallMs + standing.resetMs) / 1000)),
      ...retryAfter(standing),
    }),
    refuse: () => json({ status: 429, message: "60 per 1 minute" }, 429),
  };
}

function openaire(name: string, rates: string, applies: (visit: Visit) => boolean): EnforcedLimit {
  return {
    name,
    at: ["api.openaire.eu"],
    applies,
    rates,
    announce: ({ limit, remaining }) => ({
      "x-ratelimit-limit": String(limit),
      "x-ratelimit-used": String(limit - remaining),
    }),
    refuse: () => json({ error: "Too many requests", message: "The hourly quota is used up." }, 429),
  };
}

function hasBearer({ headers }: Visit): boolean {
  return /^Bearer \S/i.test(headers["authorization"] ?? "");
}

function retryAfter({ resetMs }: Standing): { readonly "retry-after": string } {
  return { "retry-after": String(Math.max(1, Math.ceil(resetMs / 1000))) };
}

function tooMany(title: string): Reply {
  return html(title, `<h1>${title}</h1>`, 429);
}
