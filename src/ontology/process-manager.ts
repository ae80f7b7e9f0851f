/** The one `OntologyManager` of a process. */
import {
  type OntologyAcquireOptions,
  type OntologyGrant,
  OntologyManager,
  type OntologyManagerOptions,
} from "./manager.ts";
import type { OntologySettings } from "./service-rates.ts";

let current: OntologyManager | undefined;

/**
 * Creates the manager that `acquire` and `cooldownFor` of this process use, and returns it. Call it once, before the
 * first `acquire`: a new manager does not know the requests that an earlier one has granted.
 * @throws ConfigError that lists every value of a wrong type, or else the first invalid rate or service name.
 */
export function initManager(settings: OntologySettings = {}, options: OntologyManagerOptions = {}): OntologyManager {
  current = new OntologyManager(settings, options);
  return current;
}

/**
 * Waits until one request to `host` of `service` is permitted. Call it before each request. Without `initManager` the
 * limit of every key is 8/second and 300/minute.
 * @param service null or undefined for a request of no service, whose keys are `_:host`.
 * @param host without it, the request counts under the key `service:default`.
 * @throws RateLimitExceeded in mode `fail`, when the request would have to wait.
 */
export function acquire(
  service?: string | null,
  host?: string,
  options?: OntologyAcquireOptions,
): Promise<OntologyGrant> {
  return manager().acquire(service, host, options);
}

/**
 * Blocks the key `service:host` for `seconds` from now, as a `Retry-After` asks. A later end replaces an earlier one,
 * never the reverse. The promise resolves when the processes that share the folder can read the cooldown.
 * @param key `service:host`, as `acquire` returns it.
 * @throws RangeError for a negative number of seconds or an invalid key.
 */
export function cooldownFor(key: string, seconds: number): Promise<void> {
  return manager().cooldownFor(key, seconds);
}

function manager(): OntologyManager {
  return current ?? initManager();
}
