/**
 * Loaded before each test file. After the last test, the process must end by itself: a test that leaves a server or a
 * store open would keep the whole run waiting, because the time limit of the runner is for tests, not for processes.
 */
import { after } from "node:test";

const END_MS = 60_000;

after(() => {
  setTimeout(() => {
    const left = [...new Set(process.getActiveResourcesInfo())].join(", ");
    process.stderr.write(
      `the process did not end within ${END_MS / 1000} s after its last test; still open: ${left}\n`,
    );
    process.exit(1);
  }, END_MS).unref();
});
