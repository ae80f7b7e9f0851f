import { urlHost } from "../../core/text/host.ts";

/** How many hosts are reported. The cause of further ones is probably the same. */
const HOSTS_MAX = 100;

/** The hosts whose requests bypass a hub. Each of them is reported once. */
export class BypassedHosts {
  readonly #hosts = new Set<string>();

  /** The host of a URL if it is to be reported; undefined for a known one, and for a URL that is not http or https. */
  add(url: string): string | undefined {
    const host = hostOf(url);
    if (host === undefined || this.#hosts.has(host) || this.#hosts.size >= HOSTS_MAX) return undefined;
    this.#hosts.add(host);
    return host;
  }
}

function hostOf(url: string): string | undefined {
  try {
    return urlHost(url).host;
  } catch (error) {
    if (error instanceof RangeError) return undefined;
    throw error;
  }
}
