import type { Announces, Lie, RatePlan } from "./plan.ts";

/** The rate limit headers of an honest server, for its first window. */
export function rateLimitHeaders(how: Announces, rate: RatePlan, remaining: number): Readonly<Record<string, string>> {
  const seconds = Math.ceil(rate.windowMs / 1000);
  const left = Math.max(0, remaining);
  switch (how) {
    case "nothing":
      return {};
    case "ietf":
      return {
        "ratelimit-policy": `"window";q=${rate.limit};w=${seconds}`,
        ratelimit: `"window";r=${left};t=${seconds}`,
      };
    case "x-ratelimit":
      return {
        "x-ratelimit-limit": String(rate.limit),
        "x-ratelimit-remaining": String(left),
        "x-ratelimit-reset": String(seconds),
      };
    case "crossref":
      return { "x-rate-limit-limit": String(rate.limit), "x-rate-limit-interval": `${seconds}s` };
  }
}

/** False rate limit headers. None of them may loosen a limit, and most must be ignored. */
export function falseRateLimitHeaders(lie: Lie, rate: RatePlan): Readonly<Record<string, string>> {
  switch (lie) {
    case "junk":
      return { "x-ratelimit-remaining": "many", ratelimit: '"a";r=x;t=', "x-rate-limit-interval": "soon" };
    case "absurd":
      return { "x-ratelimit-limit": "-5", "x-ratelimit-remaining": "1e99", "x-ratelimit-reset": "99999999999999" };
    case "spent":
      return { "x-ratelimit-limit": String(rate.limit), "x-ratelimit-remaining": "0", "x-ratelimit-reset": "2" };
    case "looser":
      return { "x-ratelimit-limit": String(rate.limit * 100), "x-ratelimit-remaining": String(rate.limit * 100) };
    case "contradiction":
      return {
        "x-ratelimit-limit": String(rate.limit),
        "x-ratelimit-remaining": String(rate.limit * 3),
        "x-rate-limit-limit": "1",
        "x-rate-limit-interval": "1s",
      };
  }
}
