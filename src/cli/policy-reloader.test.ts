import assert from "node:assert/strict";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { type TestContext, test } from "node:test";
import { temporaryFolder } from "../../test/temporary-folder.ts";
import { ConfigError } from "../errors.ts";
import type { PolicyChange } from "../policy/policy-changes.ts";
import { PolicyReloader } from "./policy-reloader.ts";
import type { Flags, Io } from "./program.ts";

const CHANGE: PolicyChange = { setting: "ratelimits.global.max_inflight", old: "9", new: "5", source: "limits.yaml:3" };

async function opened(t: TestContext, { flags = {}, env = {} }: { flags?: Flags; env?: Io["env"] } = {}) {
  const hangups = new Set<() => void>();
  const lines: string[] = [];
  let waiting = Promise.withResolvers<void>();
  const output = { write: () => true };
  const onHangup = (listener: () => void) => {
    hangups.add(listener);
    return () => hangups.delete(listener);
  };
  const reloader = await PolicyReloader.open(flags, { argv: [], env, stdout: output, stderr: output, onHangup });
  t.after(() => reloader[Symbol.dispose]());
  const log = (line: string) => {
    lines.push(line);
    waiting.resolve();
    waiting = Promise.withResolvers<void>();
  };
  return { reloader, lines, log, next: () => waiting.promise, hangups };
}

test("each SIGHUP reloads and prints every changed value with its source, or that nothing changed", async t => {
  const { reloader, lines, log, next, hangups } = await opened(t);
  const results: (readonly PolicyChange[])[] = [[CHANGE, { ...CHANGE, old: undefined }], []];
  reloader.start({ reload: async () => results.shift() ?? [], log });
  for (let call = 0; call < 2; call += 1) {
    const printed = next();
    for (const listener of hangups) listener();
    await printed;
  }
  assert.deepEqual(lines, [
    "policy reloaded (SIGHUP): 2 values changed",
    "  ratelimits.global.max_inflight: 9 -> 5 (limits.yaml:3)",
    "  ratelimits.global.max_inflight: not set -> 5 (limits.yaml:3)",
    "policy reloaded (SIGHUP): nothing changed",
  ]);
  reloader[Symbol.dispose]();
  assert.equal(hangups.size, 0);
});

test("an invalid policy is printed with every problem, and later reloads work", async t => {
  const { reloader, lines, log, next, hangups } = await opened(t);
  let isValid = false;
  reloader.start({
    reload: async () => {
      if (isValid) return [];
      throw new ConfigError([
        { where: "limits.yaml:2", path: "hosts", message: "expected a map" },
        { where: "limits.yaml:3", path: "globl", message: "unknown key" },
      ]);
    },
    log,
  });
  const printed = next();
  for (const listener of hangups) listener();
  await printed;
  isValid = true;
  const again = next();
  for (const listener of hangups) listener();
  await again;
  assert.deepEqual(lines, [
    "policy not reloaded (SIGHUP); the old policy stays in force:",
    "  limits.yaml:2: hosts: expected a map\n  limits.yaml:3: globl: unknown key",
    "policy reloaded (SIGHUP): nothing changed",
  ]);
});

test("a SIGHUP before the policy is loaded is carried out afterwards, and several during a reload are one", async t => {
  const { reloader, lines, log, next, hangups } = await opened(t);
  for (const listener of hangups) listener();
  const first = Promise.withResolvers<readonly PolicyChange[]>();
  let calls = 0;
  const reload = () => {
    calls += 1;
    return calls === 1 ? first.promise : Promise.resolve([]);
  };
  reloader.start({ reload, log });
  assert.equal(calls, 1);
  for (let call = 0; call < 3; call += 1) for (const listener of hangups) listener();
  first.resolve([]);
  while (lines.length < 2) await next();
  assert.equal(calls, 2);
});

test("a reload that replaces thousands of values prints fifty of them and the number of the others", async t => {
  const { reloader, lines, log, next, hangups } = await opened(t);
  reloader.start({ reload: async () => Array.from({ length: 3000 }, () => CHANGE), log });
  for (const listener of hangups) listener();
  while (lines.length < 52) await next();
  assert.equal(lines[0], "policy reloaded (SIGHUP): 3000 values changed");
  assert.equal(lines[51], "  and 2950 more");
});

test("--watch-policy reloads when a file of the policy changes, and a save without a change prints nothing", async t => {
  const file = join(temporaryFolder("harvest"), "limits.yaml");
  writeFileSync(file, "a");
  const { reloader, lines, log, next } = await opened(t, {
    flags: { watchPolicy: true },
    env: { DOCSTOKG_RLIMITS_YAML: file },
  });
  const reloads = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
  let calls = 0;
  const reload = async () => {
    calls += 1;
    reloads[calls - 1]?.resolve();
    return calls === 1 ? [] : [CHANGE];
  };
  reloader.start({ reload, log });
  for (const { promise } of reloads) {
    writeFileSync(file, `${calls}`);
    await promise;
  }
  while (lines.length < 2) await next();
  assert.deepEqual(
    lines.filter(line => !line.startsWith("  ")),
    ["policy reloaded (--watch-policy): 1 value changed"],
  );
});

test("--watch-policy without a policy file is a usage error that names the variables", async t => {
  await assert.rejects(opened(t, { flags: { watchPolicy: true } }), {
    name: "ConfigError",
    message:
      "--watch-policy: no policy file to watch; name one with " +
      "DOCSTOKG_RLIMITS_YAML, DOCSTOKG_BREAKERS_YAML, DOCSTOKG_IDENTITIES_YAML",
  });
});
