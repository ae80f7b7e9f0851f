import { Cookie, canonicalDomain, defaultPath, domainMatch, getPublicSuffix, pathMatch } from "tough-cookie";
import type { Time } from "../time/time.ts";

/** Response headers as undici returns them. */
type Headers = Readonly<Record<string, string | string[] | undefined>>;

interface StoredCookie {
  readonly name: string;
  readonly value: string;
  readonly domain: string;
  /** Sent to `domain` alone, not to the hosts below it. */
  readonly isHostOnly: boolean;
  readonly path: string;
  readonly isSecure: boolean;
  readonly expiresMs: number;
}

/** Maximum number of sites whose cookies are kept. The least recently used site is dropped. */
const SITES_MAX = 500;
/** RFC 6265, 6.1, asks for at least 50 cookies of a domain. The oldest ones are dropped. */
const COOKIES_PER_SITE = 50;
/** A longer cookie is ignored, as in browsers. */
const COOKIE_CHARS_MAX = 4096;
/** Maximum length of all cookies of a site together. Servers refuse requests with much longer headers. */
const SITE_CHARS_MAX = 6000;

/**
 * The cookies of a run. Some publishers set a cookie, redirect, and send the file only to a client that returns the
 * cookie. Cookies are kept in memory only, and end with the run. A cookie is sent to the hosts that RFC 6265 and the
 * public suffix list allow, so the cookie of one publisher is never sent to another.
 */
export class Cookies {
  readonly #time: Time;
  /** By registrable domain, or by host if it has none. The least recently used site is the first one. */
  readonly #sites = new Map<string, readonly StoredCookie[]>();

  constructor(time: Time) {
    this.#time = time;
  }

  /** The `Cookie` field of a request; no field if there is no cookie for the URL. */
  fieldsFor(url: string): Readonly<Record<string, string>> {
    const target = new URL(url);
    const nowMs = this.#time.wallMs();
    const sent = this.#cookiesOf(siteOf(target.hostname))
      .filter(cookie => cookie.expiresMs > nowMs && isFor(cookie, target))
      // RFC 6265, 5.4: longer paths first; the sort is stable, so older cookies come first.
      .toSorted((one, other) => other.path.length - one.path.length);
    return sent.length === 0 ? {} : { cookie: sent.map(({ name, value }) => `${name}=${value}`).join("; ") };
  }

  /** Keeps the cookies of a response. Returns true if a cookie was added, changed or deleted. */
  keep(url: string, headers: Headers): boolean {
    const lines = [headers["set-cookie"] ?? []].flat().filter(line => line.length <= COOKIE_CHARS_MAX);
    if (lines.length === 0) return false;
    const from = new URL(url);
    const site = siteOf(from.hostname);
    const nowMs = this.#time.wallMs();
    let isChanged = false;
    let cookies = this.#cookiesOf(site);
    for (const line of lines.slice(0, COOKIES_PER_SITE)) {
      const cookie = parsed(line, from, nowMs);
      if (cookie === undefined) continue;
      const earlier = cookies.find(known => isSame(known, cookie));
      const isKept = cookie.expiresMs > nowMs;
      isChanged ||= isKept ? earlier?.value !== cookie.value : earlier !== undefined;
      cookies = [...cookies.filter(known => known !== earlier), ...(isKept ? [cookie] : [])];
    }
    this.#set(site, newest(cookies.filter(({ expiresMs }) => expiresMs > nowMs)));
    return isChanged;
  }

  #cookiesOf(site: string): readonly StoredCookie[] {
    const cookies = this.#sites.get(site);
    if (cookies !== undefined) this.#set(site, cookies);
    return cookies ?? [];
  }

  #set(site: string, cookies: readonly StoredCookie[]): void {
    this.#sites.delete(site);
    if (cookies.length > 0) this.#sites.set(site, cookies);
    const [oldest] = this.#sites.keys();
    if (oldest !== undefined && this.#sites.size > SITES_MAX) this.#sites.delete(oldest);
  }
}

/** Undefined for a public suffix (`github.io`), an IP address and a name without dots. */
function registrableDomain(host: string): string | undefined {
  return getPublicSuffix(host, { allowSpecialUseDomain: true, ignoreError: true }) ?? undefined;
}

function siteOf(host: string): string {
  return registrableDomain(host) ?? host;
}

/** Undefined if the line is not a cookie, or is a cookie that the server may not set. */
function parsed(line: string, from: URL, nowMs: number): StoredCookie | undefined {
  const cookie = Cookie.parse(line, { loose: true });
  if (cookie === undefined) return undefined;
  const { key: name, value, path, secure: isSecure } = cookie;
  if (name + value === "" || /\p{Cc}/u.test(name + value)) return undefined;
  if (isSecure && from.protocol !== "https:") return undefined;
  const domain = canonicalDomain(cookie.domain) || from.hostname;
  const isHostOnly = !cookie.domain || (domain === from.hostname && registrableDomain(domain) === undefined);
  if (!isHostOnly && (registrableDomain(domain) === undefined || !domainMatch(from.hostname, domain))) return undefined;
  const isRootPath = path === "/";
  if (/^__secure-/i.test(name) && !isSecure) return undefined;
  if (/^__host-/i.test(name) && !(isSecure && isHostOnly && isRootPath)) return undefined;
  return {
    ...{ name, value, domain, isHostOnly, isSecure },
    path: path?.startsWith("/") ? path : defaultPath(from.pathname),
    expiresMs: expiryOf(cookie, nowMs),
  };
}

function expiryOf({ maxAge, expires }: Cookie, nowMs: number): number {
  if (typeof maxAge === "number") return maxAge <= 0 ? 0 : nowMs + maxAge * 1000;
  return expires instanceof Date ? expires.getTime() : Number.POSITIVE_INFINITY;
}

function isSame(one: StoredCookie, other: StoredCookie): boolean {
  return one.name === other.name && one.domain === other.domain && one.path === other.path;
}

function isFor({ domain, isHostOnly, path, isSecure }: StoredCookie, { hostname, pathname, protocol }: URL): boolean {
  const isOfHost = isHostOnly ? domain === hostname : domainMatch(hostname, domain) === true;
  return isOfHost && pathMatch(pathname, path) && (!isSecure || protocol === "https:");
}

function newest(cookies: readonly StoredCookie[]): readonly StoredCookie[] {
  let chars = 0;
  return cookies
    .slice(-COOKIES_PER_SITE)
    .toReversed()
    .filter(({ name, value }) => {
      chars += name.length + value.length + 3;
      return chars <= SITE_CHARS_MAX;
    })
    .toReversed();
}
