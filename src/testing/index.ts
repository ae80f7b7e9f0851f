/** For the tests of those who build on us: time that obeys, and a server that insists. */
export { FakeTime, type FakeTimeOptions } from "./fake-time.ts";
export { type StrictServer, type StrictServerOptions, startStrictServer } from "./strict-server.ts";
