import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { chmod, mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { promisify } from "node:util";
import { FileSignals } from "./file-signals.ts";

const run = promisify(execFile);
const asUser = process.getuid?.() === 0 ? false : "only root can run a program as another user";

test("another user that may write the database notifies its processes", { skip: asUser }, async t => {
  const folder = await mkdtemp(join(tmpdir(), "signals-"));
  t.after(() => rm(folder, { recursive: true }));
  const file = join(folder, "limits.db");
  await writeFile(file, "");
  await chmod(folder, 0o777);
  await chmod(file, 0o666);
  let notified = Promise.withResolvers<void>();
  const subscription = new FileSignals(file).listen("orders", () => notified.resolve());
  t.after(() => subscription.stop());
  await notified.promise;
  notified = Promise.withResolvers<void>();
  const script = `
    const { FileSignals } = await import(${JSON.stringify(new URL("./file-signals.ts", import.meta.url).href)});
    process.setgid(65534);
    process.setuid(65534);
    await new FileSignals(${JSON.stringify(file)}).send("orders");`;
  await run(process.execPath, ["--input-type=module", "--eval", script]);
  await notified.promise;
  assert.ok(subscription.isActive);
});
