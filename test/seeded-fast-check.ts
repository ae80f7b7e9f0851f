/** fast-check for tests that `npm test` runs: every property draws from the seed of the run, so that a run can be repeated. */
import fc from "fast-check";
import { PROPERTY_SEED_VARIABLE } from "./property-seed.ts";

fc.configureGlobal({ ...fc.readConfigureGlobal(), seed: Number(process.env[PROPERTY_SEED_VARIABLE]) });

export * from "fast-check";
export { default } from "fast-check";
