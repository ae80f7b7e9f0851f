/** `docstokg/ontology`: one manager for the process, and the two calls a resolver makes. */
import {
  type OntologyAcquireOptions,
  type OntologyGrant,
  OntologyManager,
  type OntologyManagerOptions,
} from "./manager.ts";
import type { OntologySettings } from "./settings.ts";

export {
  type OntologyAcquireOptions,
  type OntologyGrant,
  OntologyManager,
  type OntologyManagerOptions,
  type OntologySettings,
};

let current: OntologyManager | undefined;

/** Sets the limits for `acquire` and `cooldownFor`; those who wait under earlier ones finish under them. */
export function initManager(settings: OntologySettings = {}, options: OntologyManagerOptions = {}): OntologyManager {
  current = new OntologyManager(settings, options);
  return current;
}

/** Waits for, or in fail mode insists on, leave to call a host of a service. Without `initManager`, at 8/second + 300/minute. */
export function acquire(service: string, host?: string, options?: OntologyAcquireOptions): Promise<OntologyGrant> {
  return manager().acquire(service, host, options);
}

/** Nothing of `service:host` goes for so many seconds. */
export function cooldownFor(key: string, seconds: number): void {
  manager().cooldownFor(key, seconds);
}

function manager(): OntologyManager {
  return current ?? initManager();
}
