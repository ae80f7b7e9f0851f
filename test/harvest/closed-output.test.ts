import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdirSync, readdirSync } from "node:fs";
import { join } from "node:path";
import { type TestContext, test } from "node:test";
import { serve } from "../http/kit.ts";
import { temporaryFolder } from "../temporary-folder.ts";
import { pdf } from "./kit.ts";

async function publisher(t: TestContext): Promise<string> {
  const server = await serve(t, (request, response) => {
    if (request.url === "/robots.txt") response.end("");
    else response.end(pdf(request.url ?? ""));
  });
  return server.origin;
}

test("a run continues when its output is closed", async t => {
  const origin = await publisher(t);
  const out = join(temporaryFolder("harvest"), "papers");
  mkdirSync(out);
  const works = ["a", "b", "c"].map(name => `${origin}/${name}.pdf`);
  const flags = ["--out", out, "--allow-private", "--no-telemetry", "--resolvers", "landing_page"];
  const child = spawn(
    process.execPath,
    [join(import.meta.dirname, "run-process.ts"), "run", "nonsense!", ...works, ...flags],
    { stdio: ["ignore", "pipe", "pipe"] },
  );
  child.stderr.destroy();
  child.stdout.destroy();
  const [code] = await once(child, "exit");
  assert.equal(code, 1, "one identifier is invalid");
  assert.equal(readdirSync(out).filter(name => name.endsWith(".pdf")).length, 3);
});
