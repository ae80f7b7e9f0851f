/**
 * `docstokg/ontology`: rate limits for keys of the form `service:host` (`initManager`, `acquire`, `cooldownFor`), and
 * the program `ontofetch` as the class `Ontofetch`.
 */
import "./http/supported-runtime.ts";

export type { Rate } from "./core/limits/rate.ts";
export { ConfigError, isDocstokgError, RateLimitExceeded } from "./errors.ts";
export type { HubEvent, NetworkOptions } from "./http/hub-options.ts";
export type { KeySnapshot } from "./limiter/key-snapshot.ts";
export type { LimiterEvent } from "./limiter/limiter-events.ts";
export type { Listener } from "./listeners.ts";
export type { OntologyFileFormat, TargetFormat } from "./ontology/format.ts";
export {
  type OntologyAcquireOptions,
  type OntologyEvent,
  type OntologyGrant,
  OntologyManager,
  type OntologyManagerOptions,
} from "./ontology/manager.ts";
export { Ontofetch, type OntofetchOptions } from "./ontology/ontofetch.ts";
export { loadOntofetchSettings, type OntofetchFlags, type OntofetchSettings } from "./ontology/ontofetch-settings.ts";
export type { OntologyManifest } from "./ontology/ontology-manifest.ts";
export type { OntologyStore, StoredVersion } from "./ontology/ontology-store.ts";
export type { OntologyFacts } from "./ontology/parsing/ontology-facts.ts";
export type { PlanEntry, PlanItem, PlanRefusal } from "./ontology/planner.ts";
export { acquire, cooldownFor, initManager } from "./ontology/process-manager.ts";
export type { PullOptions, PullResult } from "./ontology/pull-result.ts";
export type { ListedVersion, RefusalReason, Source } from "./ontology/resolver.ts";
export type { OntologyRates, OntologySettings } from "./ontology/service-rates.ts";
export type { LimitWait } from "./ontology/wait-reporter.ts";
export type { WorkFolder } from "./ontology/work-folder.ts";
export type { Environment } from "./policy/environment.ts";
export type { Time, Timer } from "./time/time.ts";
