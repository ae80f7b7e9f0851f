/** Recognises bot checks (challenge pages), so that they are reported and not taken for files. They are not solved. */

type HeaderTexts = Readonly<Record<string, string | undefined>>;

/**
 * Text in such pages, and the product that sends it. `further` must match too. One pattern for both (`…[\s\S]*…`) would
 * take quadratic time.
 */
const MARKS: readonly (readonly [text: RegExp, product: string, further?: RegExp])[] = [
  [
    /<title>\s*(?:just a moment\b|attention required! \| cloudflare)|\/cdn-cgi\/challenge-platform|\bcf-chl-|_cf_chl_opt/i,
    "Cloudflare challenge",
  ],
  [/\berror code: 10(?:15|20)\b/i, "blocked by Cloudflare"],
  [/making sure you(?:'|&#39;|’)re not a bot|\banubis_challenge\b/i, "Anubis challenge"],
  [/awswafcookiedomainlist|\bawswaf\.com\b|token\.awswaf/i, "AWS WAF challenge"],
  [/\b_incapsula_resource\b|incapsula incident id/i, "Imperva challenge"],
  // The search ends at the next `datadome`: a page that repeats the word would be read 200 times otherwise.
  [/\bdatadome\b(?:(?!\bdatadome\b).){0,200}captcha|captcha-delivery\.com/is, "DataDome challenge"],
  [/<title>\s*access denied\s*<\/title>/i, "blocked by Akamai", /reference&#32;&#35;/i],
  [/errors\.edgesuite\.net/i, "blocked by Akamai"],
  [/preparing to download/i, "proof-of-work challenge"],
  [/g-recaptcha|h-captcha|cf-turnstile/i, "CAPTCHA"],
  [/checking (?:if the site connection is secure|your browser before)/i, "browser check"],
  [/verify(?:ing)? (?:that )?you are (?:a )?human/i, "human check"],
  [/\bcookieabsent\b|cookies? (?:must be|are) (?:enabled|required|disabled)/i, "cookie check"],
];

/** The kind of challenge by status, headers (lower-case names) and body of a page; undefined if there is no challenge. */
export function challengeOf(status: number, headers: HeaderTexts, body: string): string | undefined {
  const known = challengeInFields(headers) ?? challengeIn(body);
  return known ?? (status === 202 && body.trim() === "" ? "status 202 without a page" : undefined);
}

/** The kind of challenge by the beginning of a page; undefined if there is no challenge. */
export function challengeIn(html: string): string | undefined {
  return MARKS.find(([text, , further]) => text.test(html) && further?.test(html) !== false)?.[1];
}

/** The kind of challenge by the response headers (lower-case names); some challenges have no page. */
export function challengeInFields(headers: HeaderTexts): string | undefined {
  if (headers["cf-mitigated"] === "challenge") return "Cloudflare challenge";
  if (/challenge|captcha/.test(headers["x-amzn-waf-action"] ?? "")) return "AWS WAF challenge";
  return undefined;
}
