import assert from "node:assert/strict";
import { existsSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { type TestContext, test } from "node:test";
import { ontofetch } from "../../src/cli/ontofetch.ts";
import { runProgram } from "../../src/cli/program.ts";
import { loadOntofetchSettings } from "../../src/ontology/ontofetch-settings.ts";
import { FakeTime } from "../../src/testing/fake-time.ts";
import { serve } from "../http/kit.ts";
import { folderFor, type Project, projectFor } from "./kit.ts";
import { outcomes } from "./outcomes.ts";

const OBO = "format-version: 1.2\nontology: x\n\n[Term]\nid: X:1\nname: one\n";

/** A project with one source, `x`, which a test server serves. */
async function projectAt(t: TestContext, handler: Parameters<typeof serve>[1]) {
  const server = await serve(t, handler);
  const url = `${server.origin}/x.obo`;
  const sources = `allow_private: true\nsources:\n  x: { resolver: direct, extras: { url: "${url}" } }\n`;
  return { server, project: await projectFor(t, { network: {} } as Parameters<typeof projectFor>[1], sources) };
}

function manifestIn({ folder }: Project): Record<string, unknown> {
  const [version = ""] = readdirSync(join(folder, "ontologies", "x"));
  return JSON.parse(readFileSync(join(folder, "ontologies", "x", version, "manifest.json"), "utf8"));
}

test("credentials in a redirect URL are neither sent nor written to the manifest", async t => {
  const { project, server } = await projectAt(t, (request, response) => {
    const location = `http://bob:hunter2@${request.headers.host}/y.obo?sig=hunter2`;
    if (request.url === "/x.obo") response.writeHead(302, { location }).end();
    else response.end(OBO);
  });
  assert.deepEqual(outcomes(await project.pull()), { x: "fetched" });
  assert.equal(manifestIn(project)["final_url"], `${server.origin}/y.obo`);
  assert.equal(server.requests[1]?.headers.authorization, undefined);
});

test("control characters in an error response are removed from the message", async t => {
  const { project } = await projectAt(t, (_, response) => {
    response.writeHead(404).end("no \u001b]0;owned\u0007\u001b[2J\u009b2J such file");
  });
  const [result] = await project.pull();
  assert.ok(result?.outcome === "failed");
  assert.match(result.message, /returned status 404 \(no .* such file\)$/);
  assert.doesNotMatch(result.message, /\p{Cc}/u);
});

test("a version whose checked_at is in the future is checked again", async t => {
  let body = OBO;
  const { project } = await projectAt(t, (_, response) => response.end(body));
  const ahead = new FakeTime({ wallMs: Date.now() + 10 * 365 * 86_400_000 });
  assert.deepEqual(outcomes(await project.pull({ time: ahead })), { x: "fetched" });
  body = OBO.replace("one", "two");
  assert.deepEqual(outcomes(await project.pull()), { x: "fetched" });
});

test("the draft of a killed process is deleted by the next pull or by prune", async t => {
  const { project } = await projectAt(t, (_, response) => response.end(OBO));
  const draft = join(project.folder, "ontologies", ".ontofetch", "drafts", "x");
  const leave = () => {
    mkdirSync(draft, { recursive: true });
    writeFileSync(join(draft, "half.obo"), OBO);
  };
  leave();
  assert.deepEqual(outcomes(await project.pull()), { x: "fetched" });
  const [version = ""] = readdirSync(join(project.folder, "ontologies", "x"));
  assert.deepEqual(readdirSync(join(project.folder, "ontologies", "x", version)).sort(), ["manifest.json", "x.obo"]);
  assert.equal(existsSync(draft), false);
  leave();
  const silent = { write: () => undefined };
  const argv = ["prune", "--keep", "1", "--sources", join(project.folder, "sources.yaml")];
  assert.equal(await runProgram(ontofetch, { argv, env: {}, stdout: silent, stderr: silent }), 0);
  assert.equal(existsSync(draft), false);
});

test("a URL with a token is refused; parameters with similar names are accepted", async t => {
  const folder = folderFor(t);
  const load = (url: string) => {
    const text = `sources:\n  x: { resolver: direct, extras: { url: "${url}" } }\n`;
    writeFileSync(join(folder, "sources.yaml"), text);
    return loadOntofetchSettings({}, {}, folder);
  };
  for (const url of [
    "https://ghp_token@x.example/x.obo",
    "https://x.example/x.obo?private_token=1",
    "https://x.example/x.obo?X-Goog-Signature=1",
    "https://x.example/x.obo?auth=1",
  ]) {
    await assert.rejects(load(url), /contains a secret/, url);
  }
  const plain = "https://x.example/x.obo?author=a&keyword=b&signed=no";
  assert.equal((await load(plain)).sources[0]?.extras["url"], plain);
});
