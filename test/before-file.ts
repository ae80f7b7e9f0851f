/** Loaded before each test file. */
import { registerHooks } from "node:module";
import { after } from "node:test";

const END_MS = 60_000;
const SEEDED = new URL("./seeded-fast-check.ts", import.meta.url).href;

// Tests import fast-check itself, so that one that is run alone draws anew each time.
registerHooks({
  resolve: (specifier, context, next) =>
    specifier === "fast-check" && context.parentURL !== SEEDED
      ? { url: SEEDED, shortCircuit: true }
      : next(specifier, context),
});

// After the last test, the process must end by itself: a test that leaves a server or a store open would keep the whole
// run waiting, because the time limit of the runner is for tests, not for processes.
after(() => {
  setTimeout(() => {
    const left = [...new Set(process.getActiveResourcesInfo())].join(", ");
    process.stderr.write(
      `the process did not end within ${END_MS / 1000} s after its last test; still open: ${left}\n`,
    );
    process.exit(1);
  }, END_MS).unref();
});
