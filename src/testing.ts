/**
 * `docstokg/testing`: `FakeTime`, a clock that a test moves; `startStrictServer`, a server that enforces its limit; and
 * `startInternet`, a simulation of the services that the programs call.
 */
export { FakeTime, type FakeTimeOptions } from "./testing/fake-time.ts";
export type { SimulatedWork } from "./testing/internet/catalogue.ts";
export type { Copy, ServiceName, SimulatedIds } from "./testing/internet/copy.ts";
export type { HostLedger, Ledger } from "./testing/internet/ledger.ts";
export type { LimitLedger } from "./testing/internet/limit-counter.ts";
export type { OntologyCopy, OntologyServiceName, SimulatedOntology } from "./testing/internet/ontology-catalogue.ts";
export type { OntologyFormat } from "./testing/internet/ontology-file.ts";
export type { ScriptStep, StepCondition, StepEffect } from "./testing/internet/script-step.ts";
export {
  type Internet,
  type InternetOptions,
  type StartedStep,
  startInternet,
} from "./testing/internet/start-internet.ts";
export type { WorkScenarioName } from "./testing/internet/work-scenarios.ts";
export { type StrictServer, type StrictServerOptions, startStrictServer } from "./testing/strict-server.ts";
