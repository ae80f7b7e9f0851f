/** Pages that ask whether we are a person. They are recognised, reported and left alone; nobody solves them. */

/** What is found on such pages, and who puts it there. */
const MARKS: readonly (readonly [RegExp, string])[] = [
  [/<title>\s*just a moment\b|\/cdn-cgi\/challenge-platform|\bcf-chl-|_cf_chl_opt/i, "a challenge of Cloudflare"],
  [/\berror code: 10(?:15|20)\b/i, "a block of Cloudflare"],
  [/making sure you(?:'|&#39;|’)re not a bot|\banubis_challenge\b/i, "a challenge of Anubis"],
  [/awswafcookiedomainlist|\bawswaf\.com\b|token\.awswaf/i, "a challenge of AWS WAF"],
  [/\b_incapsula_resource\b|incapsula incident id/i, "a challenge of Imperva"],
  [/\bdatadome\b.{0,200}captcha|captcha-delivery\.com/is, "a challenge of DataDome"],
  [/<title>\s*access denied\s*<\/title>[\s\S]*reference&#32;&#35;|errors\.edgesuite\.net/i, "a block of Akamai"],
  [/preparing to download/i, "a proof of work"],
  [/g-recaptcha|h-captcha|cf-turnstile/i, "a captcha"],
  [/checking (?:if the site connection is secure|your browser before)/i, "a check of the browser"],
  [/verify(?:ing)? (?:that )?you are (?:a )?human/i, "a check for humans"],
  [/\bcookieabsent\b|cookies? (?:must be|are) (?:enabled|required|disabled)/i, "a check for cookies"],
];

/** Whose challenge the beginning of a page is; undefined when it is none. */
export function challengeIn(html: string): string | undefined {
  return MARKS.find(([mark]) => mark.test(html))?.[1];
}

/** The same by the fields of an answer, by lower-case names: some have no page. */
export function challengeInFields(headers: Readonly<Record<string, string | undefined>>): string | undefined {
  if (headers["cf-mitigated"] === "challenge") return "a challenge of Cloudflare";
  if (/challenge|captcha/.test(headers["x-amzn-waf-action"] ?? "")) return "a challenge of AWS WAF";
  return undefined;
}
