/** For the tests of those who build on us: time that obeys, a server that insists, and an internet. */
export { FakeTime, type FakeTimeOptions } from "./fake-time.ts";
export type { SimulatedWork } from "./internet/catalogue.ts";
export type { Copy, ServiceName, SimulatedIds } from "./internet/copy.ts";
export type { HostLedger, Ledger } from "./internet/ledger.ts";
export type { LimitLedger } from "./internet/limit-count.ts";
export type { OntologyCopy, OntologyServiceName, SimulatedOntology } from "./internet/ontologies.ts";
export type { OntologyFormat } from "./internet/ontology-file.ts";
export type { Act, Deed, Scene } from "./internet/script.ts";
export { type Internet, type InternetOptions, type StagedAct, startInternet } from "./internet/start-internet.ts";
export type { Story } from "./internet/tales.ts";
export { type StrictServer, type StrictServerOptions, startStrictServer } from "./strict-server.ts";
