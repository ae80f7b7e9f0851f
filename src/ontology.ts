/** `docstokg/ontology`: one manager for the process, the two calls a resolver makes, and all of `ontofetch` as a class. */

import {
  type OntologyAcquireOptions,
  type OntologyGrant,
  OntologyManager,
  type OntologyManagerOptions,
} from "./ontology/manager.ts";
import { Ontofetch, type OntofetchOptions, type PullOptions, type PullResult } from "./ontology/ontofetch.ts";
import { loadOntofetchSettings, type OntofetchFlags, type OntofetchSettings } from "./ontology/ontofetch-settings.ts";
import type { OntologySettings } from "./ontology/service-rates.ts";

export { ConfigError, isDocstokgError, RateLimitExceeded } from "./errors.ts";
export type { KeySnapshot } from "./limiter/key-snapshot.ts";
export type { LimiterEvent } from "./limiter/limiter-events.ts";
export type { Listener } from "./listeners.ts";
export type { OntologyManifest } from "./ontology/ontology-manifest.ts";
export type { StoredVersion } from "./ontology/ontology-store.ts";
export type { PlanEntry, PlanItem, PlanRefusal } from "./ontology/planner.ts";
export type { Source } from "./ontology/resolver.ts";
export type { Time, Timer } from "./time/time.ts";
export {
  loadOntofetchSettings,
  Ontofetch,
  type OntofetchFlags,
  type OntofetchOptions,
  type OntofetchSettings,
  type OntologyAcquireOptions,
  type OntologyGrant,
  OntologyManager,
  type OntologyManagerOptions,
  type OntologySettings,
  type PullOptions,
  type PullResult,
};

let current: OntologyManager | undefined;

/**
 * Sets the limits for `acquire` and `cooldownFor`. Call it once, before the first of them: a new manager does not know
 * what an earlier one has sent.
 */
export function initManager(settings: OntologySettings = {}, options: OntologyManagerOptions = {}): OntologyManager {
  current = new OntologyManager(settings, options);
  return current;
}

/** Waits for, or in fail mode insists on, leave to call a host of a service. Without `initManager`, at 8/second + 300/minute. */
export function acquire(service: string, host?: string, options?: OntologyAcquireOptions): Promise<OntologyGrant> {
  return manager().acquire(service, host, options);
}

/** Nothing of `service:host` goes for so many seconds. */
export function cooldownFor(key: string, seconds: number): Promise<void> {
  return manager().cooldownFor(key, seconds);
}

function manager(): OntologyManager {
  return current ?? initManager();
}
