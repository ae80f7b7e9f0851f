/** Limits of services with several pools of callers: by API key, by email address, or by the kind of request. */
import { json, type SimulatedRequest, tooMany } from "./exchange.ts";
import type { EnforcedLimit, LimitState } from "./limit-counter.ts";

/** The pool of a request: polite with an email address, else public; single for one record, array for a list. */
function crossrefPool({ path, query, headers }: SimulatedRequest): string {
  const isPolite = query.get("mailto") !== null || /mailto:/i.test(headers["user-agent"] ?? "");
  const isSingle = /^(?:\/v1)?\/works\/./.test(path);
  return `${isPolite ? "polite" : "public"}-${isSingle ? "single" : "array"}`;
}

export function crossref(pool: string, rates: string, maxConcurrent: number): EnforcedLimit {
  return {
    name: `crossref ${pool}`,
    at: ["api.crossref.org"],
    applies: request => crossrefPool(request) === pool,
    rates,
    maxConcurrent,
    announce: ({ limit, maxConcurrent: concurrent }) => ({
      "x-rate-limit-limit": String(limit),
      "x-rate-limit-interval": "1s",
      "x-concurrency-limit": String(concurrent),
      "x-api-pool": pool,
    }),
    refuse: () => tooMany(),
  };
}

export function hasOpenalexKey({ query, headers }: SimulatedRequest): boolean {
  return query.get("api_key") !== null || headers["api_key"] !== undefined;
}

/** One credit is 1/10,000 of a dollar. A full-text search costs 10 credits, a file 100. */
function openalexCost({ host, query }: SimulatedRequest): number {
  if (host === "content.openalex.org") return 100;
  return query.get("search") !== null || /\bsearch:/.test(query.get("filter") ?? "") ? 10 : 1;
}

export function openalex(
  name: string,
  credits: number,
  applies: (request: SimulatedRequest) => boolean,
): EnforcedLimit {
  const usd = (count: number) => String(count / 10_000);
  return {
    name: `openalex, ${name}`,
    at: ["api.openalex.org", "content.openalex.org"],
    applies,
    rates: "100/SECOND",
    dailyCredits: { credits, cost: openalexCost },
    announce: ({ creditsLeft, requestCredits, untilMidnightMs }) => ({
      "x-ratelimit-limit": String(credits),
      "x-ratelimit-remaining": String(Math.max(0, creditsLeft)),
      "x-ratelimit-credits-used": String(requestCredits),
      "x-ratelimit-onetime-remaining": "0",
      "x-ratelimit-reset": String(Math.ceil(untilMidnightMs / 1000)),
      "x-ratelimit-limit-usd": usd(credits),
      "x-ratelimit-remaining-usd": usd(Math.max(0, creditsLeft)),
      "x-ratelimit-cost-usd": usd(requestCredits),
    }),
    refuse: ({ isOutOfCredits, untilMidnightMs }) =>
      json(
        {
          error: "Rate limit exceeded",
          message: isOutOfCredits
            ? "Insufficient budget. Your budget resets at midnight UTC."
            : "Too many requests per second.",
        },
        429,
        { "retry-after": isOutOfCredits ? String(Math.ceil(untilMidnightMs / 1000)) : "1" },
      ),
  };
}

export function semanticScholar(
  name: string,
  rates: string,
  applies: (request: SimulatedRequest) => boolean,
): EnforcedLimit {
  const message = "Too Many Requests. Please wait and try again or apply for a key for higher rate limits.";
  return { name, at: ["api.semanticscholar.org"], applies, rates, refuse: () => json({ message, code: "429" }, 429) };
}

export function ncbi(name: string, rates: string, applies: (request: SimulatedRequest) => boolean): EnforcedLimit {
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

export function osf(name: string, rates: string, applies: (request: SimulatedRequest) => boolean): EnforcedLimit {
  return {
    name,
    at: ["api.osf.io"],
    applies,
    rates,
    refuse: state => {
      const detail = `Request was throttled. Expected available in ${Math.ceil(state.resetMs / 1000)} seconds.`;
      return json({ errors: [{ detail }], meta: { version: "2.0" } }, 429, retryAfter(state));
    },
  };
}

export function zenodo(name: string, rates: string, applies: (request: SimulatedRequest) => boolean): EnforcedLimit {
  return {
    name,
    at: ["zenodo.org"],
    applies,
    rates,
    // Zenodo sends Retry-After with every response, also with 200, and Reset as epoch seconds.
    announce: state => ({
      "x-ratelimit-limit": String(state.limit),
      "x-ratelimit-remaining": String(state.remaining),
      "x-ratelimit-reset": String(Math.ceil((state.wallMs + state.resetMs) / 1000)),
      ...retryAfter(state),
    }),
    refuse: () => json({ status: 429, message: "60 per 1 minute" }, 429),
  };
}

export function openaire(name: string, rates: string, applies: (request: SimulatedRequest) => boolean): EnforcedLimit {
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

export function hasBearer({ headers }: SimulatedRequest): boolean {
  return /^Bearer \S/i.test(headers["authorization"] ?? "");
}

export function retryAfter({ resetMs }: LimitState): { readonly "retry-after": string } {
  return { "retry-after": String(Math.max(1, Math.ceil(resetMs / 1000))) };
}
