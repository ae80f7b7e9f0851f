import assert from "node:assert/strict";
import { join } from "node:path";
import { test } from "node:test";
import { runCli } from "../../../test/cli/kit.ts";
import { temporaryFolder } from "../../../test/temporary-folder.ts";
import { SqliteManifest } from "../../harvest/manifest/sqlite/sqlite-manifest.ts";
import { systemTime } from "../../time/system-time.ts";
import { ExitCode } from "../exit-code.ts";
import type { Io } from "../program.ts";
import { dashboard } from "./dashboard.ts";

/** The dashboard of a run without works, when it has printed its URL. */
async function startedDashboard(outputClosed: AbortSignal) {
  const folder = temporaryFolder("dashboard");
  await (await SqliteManifest.open(join(folder, "manifest.sqlite"), systemTime)).close();
  const started = Promise.withResolvers<void>();
  const listening = Promise.withResolvers<() => void>();
  const io: Io = {
    argv: [],
    env: {},
    stdout: {
      write: text => {
        if (text.startsWith("Dashboard: ")) started.resolve();
        return true;
      },
    },
    stderr: { write: () => true },
    onInterrupt: listener => {
      listening.resolve(listener);
      return () => undefined;
    },
    outputClosed,
  };
  const exitCode = dashboard.run?.([], { run: folder, port: "0", listen: "127.0.0.1" }, io);
  await started.promise;
  return { exitCode, interrupt: await listening.promise };
}

test("a dashboard that is ended by Ctrl-C has the exit code 130", async () => {
  const { exitCode, interrupt } = await startedDashboard(new AbortController().signal);
  interrupt();
  assert.equal(await exitCode, ExitCode.interrupted);
});

test("a dashboard whose output is closed ends with exit code 0, also if it was closed before", async () => {
  const closed = new AbortController();
  const { exitCode } = await startedDashboard(closed.signal);
  closed.abort();
  assert.equal(await exitCode, ExitCode.ok);
  assert.equal(await (await startedDashboard(AbortSignal.abort())).exitCode, ExitCode.ok);
});

test("a store that cannot be reached is an error before the page is served", async () => {
  // Port 1 is closed.
  for (const store of ["redis://127.0.0.1:1", "postgres://127.0.0.1:1/none"]) {
    const onInterrupt = (listener: () => void) => {
      listener();
      return () => undefined;
    };
    const { exitCode, stdout, stderr } = await runCli(["dashboard", "--store", store], { onInterrupt });
    assert.deepEqual([exitCode, stdout], [ExitCode.partial, ""], stderr);
    assert.match(stderr, /^docstokg: (?:redis|postgres).*ECONNREFUSED 127\.0\.0\.1:1/);
  }
});
