import { sha256Of } from "../files/file-hash.ts";
import { urlKey } from "./identifiers/identifiers.ts";
import type { ListedWork } from "./manifest/manifest.ts";
import { hasSecret, redactedUrl } from "./redacted-url.ts";
import type { Work } from "./work.ts";

/** The mark `…` that `redactedUrl` leaves, as it is written in a URL. In a nested URL each `%` is written as `%25`. */
const REDACTED = /%(?:25)*E2%(?:25)*80%(?:25)*A6/;
const HASH_CHARS = 16;

/**
 * The URLs of the user that contain a token or another secret. They are in memory only, for as long as their works are
 * not settled; the manifest and the names of files have the URL without its secret and a part of its hash.
 */
export class SecretUrls {
  readonly #urlByKey = new Map<string, string>();

  /** The work as it may be stored. */
  hidden(work: Work): Work {
    const { url } = work.ids;
    if (url === undefined || !hasSecret(url)) return work;
    const stored = redactedUrl(url);
    const key = work.key === urlKey(url) ? urlKey(`${stored}~${sha256Of(url).slice(0, HASH_CHARS)}`) : work.key;
    this.#urlByKey.set(key, url);
    return { ...work, key, ids: { ...work.ids, url: stored } };
  }

  /**
   * The work with its complete URL. If this process does not know the secret, the work is returned without a URL, or
   * undefined if it has no other identifier.
   */
  restored(work: ListedWork): ListedWork | undefined {
    const { url, ...ids } = work.ids;
    if (url === undefined || !REDACTED.test(url)) return work;
    const known = this.#urlByKey.get(work.key);
    if (known !== undefined) return { ...work, ids: { ...ids, url: known } };
    return Object.keys(ids).length === 0 ? undefined : { ...work, ids };
  }

  /** Whether only this process can download the work. */
  has(key: string): boolean {
    return this.#urlByKey.has(key);
  }

  /** The work is settled. */
  forget(key: string): void {
    this.#urlByKey.delete(key);
  }
}
