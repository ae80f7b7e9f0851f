/** For the tests of those who build on us: time that obeys, a server that insists, and an internet. */
export { FakeTime, type FakeTimeOptions } from "./testing/fake-time.ts";
export type { SimulatedWork } from "./testing/internet/catalogue.ts";
export type { Copy, ServiceName, SimulatedIds } from "./testing/internet/copy.ts";
export type { HostLedger, Ledger } from "./testing/internet/ledger.ts";
export type { LimitLedger } from "./testing/internet/limit-counter.ts";
export type { OntologyCopy, OntologyServiceName, SimulatedOntology } from "./testing/internet/ontology-catalogue.ts";
export type { OntologyFormat } from "./testing/internet/ontology-file.ts";
export type { ScriptStep, StepCondition, StepEffect } from "./testing/internet/script-runner.ts";
export {
  type Internet,
  type InternetOptions,
  type StartedStep,
  startInternet,
} from "./testing/internet/start-internet.ts";
export type { WorkScenarioName } from "./testing/internet/work-scenarios.ts";
export { type StrictServer, type StrictServerOptions, startStrictServer } from "./testing/strict-server.ts";
