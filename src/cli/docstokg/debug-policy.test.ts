import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { writeFile } from "node:fs/promises";
import { join, resolve } from "node:path";
import { test } from "node:test";
import { runIn, temporaryFolder } from "../../../test/cli/kit.ts";
import { ontofetch } from "../ontofetch.ts";

const HEADER =
  /^host +metadata +landing +artifact +total +max delay +HEAD +concurrent +failures \/ reset \(metadata\)$/m;

test("docstokg/register prints the policy with NODE_DEBUG=docstokg only", () => {
  const register = resolve(import.meta.dirname, "../../register.ts");
  const stderrWith = (debug: string) => {
    const env = { ...process.env, NODE_DEBUG: debug, DOCSTOKG_RLIMITS: "a.example:metadata=rates:3/SECOND" };
    const args = ["--disable-warning=ExperimentalWarning", "--import", register, "-e", "0"];
    return spawnSync(process.execPath, args, { encoding: "utf8", env }).stderr;
  };
  const printed = stderrWith("docstokg");
  assert.match(printed, HEADER);
  assert.match(printed, /^a\.example +3\/SECOND /m);
  assert.equal(stderrWith("other"), "");
});

test("ontofetch prints the limits of its services with NODE_DEBUG=docstokg only", async () => {
  const { folder } = await temporaryFolder();
  const sources = join(folder, "sources.yaml");
  // Port 9 is closed: the plan fails without a request to the network.
  const source = '{ resolver: direct, extras: { url: "http://127.0.0.1:9/x.obo" } }';
  await writeFile(sources, `sources:\n  x: ${source}\n`);
  const plan = (env: Record<string, string>) => runIn(ontofetch, ["plan", "--sources", sources], { env });
  const { stderr } = await plan({ NODE_DEBUG: "http,docstokg" });
  assert.match(stderr, HEADER);
  assert.match(stderr, /^service +rates per host$[\s\S]*^ols +8\/SECOND\+300\/MINUTE$/m);
  assert.doesNotMatch((await plan({})).stderr, HEADER);
});
