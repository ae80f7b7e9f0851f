import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { promisify } from "node:util";
import { temporaryFolder } from "../temporary-folder.ts";
import { SECRETS } from "./secrets.ts";

test("secrets in URLs, headers, errors and orders are in no file, metric, span, report or message of the process", async () => {
  const folder = temporaryFolder("telemetry");
  const program = join(import.meta.dirname, "secrets-process.ts");
  const { stdout, stderr } = await promisify(execFile)(process.execPath, [program, folder], { maxBuffer: 1e8 });
  const files = readdirSync(folder, { withFileTypes: true }).filter(entry => entry.isFile());
  const outputs = new Map(files.map(({ name }) => [name, readFileSync(join(folder, name), "latin1")]));
  outputs.set("stdout", stdout).set("stderr", stderr);
  for (const name of ["telemetry.jsonl", "telemetry.db", "metrics.txt", "telemetry.jsonl.html", "telemetry.db.json"])
    assert.ok((outputs.get(name) ?? "").length > 500, `${name} has content`);
  assert.match(stdout, /docstokg GET/, "spans are printed");
  for (const sink of ["throwing", "rejecting"])
    assert.equal(stderr.match(new RegExp(`telemetry sink ${sink} failed`, "g"))?.length, 1, stderr);
  for (const [name, text] of outputs)
    for (const [kind, secret] of Object.entries(SECRETS))
      assert.ok(
        !text.includes(secret),
        `${name} contains the ${kind}: ${text.slice(text.indexOf(secret) - 300, text.indexOf(secret) + 80)}`,
      );
});
