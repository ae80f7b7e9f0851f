import assert from "node:assert/strict";
import { existsSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type TestContext, test } from "node:test";
import { folderFor, pdf } from "../../../test/harvest/kit.ts";
import { serve } from "../../../test/http/kit.ts";
import { workOf } from "../../harvest/identifiers/identifiers.ts";
import { openManifest } from "../../harvest/manifest/manifest.ts";
import { systemTime } from "../../time/system-time.ts";
import { docstokg } from "../docstokg.ts";
import { runProgram } from "../program.ts";

interface CliResult {
  readonly code: number;
  readonly stdout: string;
  readonly stderr: string;
}

async function cli(args: readonly string[], input?: string): Promise<CliResult> {
  let stdout = "";
  let stderr = "";
  const code = await runProgram(docstokg, {
    argv: args,
    env: {},
    stdout: { write: text => (stdout += text) },
    stderr: { write: text => (stderr += text) },
    stdin: (async function* () {
      yield input ?? "";
    })(),
  });
  return { code, stdout, stderr };
}

/** A publisher whose pages name their files, as search engines want it. */
async function publisher(t: TestContext): Promise<string> {
  const server = await serve(t, (request, response) => {
    const [, room = "", name = ""] = (request.url ?? "").split("/");
    response.setHeader("content-type", "text/html");
    if (room === "robots.txt") response.end("User-agent: *\nDisallow: /private/\n");
    else if (room === "articles" && name !== "none")
      response.end(`<!doctype html><html><head><meta name="citation_pdf_url" content="/pdf/${name}"></head></html>`);
    else if (room === "pdf") response.end(pdf(name));
    else response.end("<!doctype html><html><title>Nothing here</title></html>");
  });
  return server.origin;
}

test("run, status and retry: from a list to files, and what the manifest says of it", async t => {
  const origin = await publisher(t);
  const out = join(folderFor(t), "papers");
  const list = `${origin}/articles/a\nnonsense!\n${origin}/articles/none # no copy\n${origin}/private/x\n`;
  const flags = ["--out", out, "--allow-private", "--resolvers", "landing_page"];
  const ran = await cli(["run", "--input", "-", ...flags], list);
  assert.equal(ran.code, 1, ran.stderr);
  assert.match(ran.stderr, /^backend memory, aimd off/);
  assert.match(ran.stderr, /stdin:2: .*nonsense!.* is no name we know/);
  assert.match(ran.stdout, /^1 of 3 works done, 2 failed, 1 line not understood, in /);
  assert.match(ran.stdout, /docstokg retry --failed tries them again/);
  const [file = ""] = readdirSync(out).filter(name => name.endsWith(".pdf"));
  assert.deepEqual(readFileSync(join(out, file)), pdf("a"));

  const status = await cli(["status", "--out", out]);
  assert.equal(status.code, 0);
  assert.match(status.stdout, /^3 works: 1 done, 2 failed, 0 not finished\n1 file, 400 B\n/);
  assert.match(status.stdout, /failed\s+robots\s+1/);
  const json = JSON.parse((await cli(["status", "--out", out, "--json"])).stdout);
  assert.deepEqual(json.works, { total: 3, done: 1, failed: 2, pending: 0 });

  const target = join(out, "export.jsonl");
  assert.equal((await cli(["status", "--out", out, "--export", target])).code, 0);
  const lines = readFileSync(target, "utf8").trimEnd().split("\n");
  assert.equal(lines.length, 3);
  assert.equal((await cli(["status", "--out", out, "--export", "-"])).stdout, readFileSync(target, "utf8"));
  assert.deepEqual(
    lines.map(line => JSON.parse(line).reason),
    ["ok", "no-copy", "robots"],
  );

  const idle = await cli(["retry", ...flags, "--json", "--quiet"]);
  assert.equal(JSON.parse(idle.stdout).works.total, 0);
  const again = await cli(["retry", "--reason", "no-copy", ...flags, "--json", "--quiet"]);
  assert.deepEqual([again.code, JSON.parse(again.stdout).works.failed, again.stderr], [1, 1, ""]);
});

test("a list that a strict run refuses changes nothing of what the manifest had", async t => {
  const origin = await publisher(t);
  const folder = folderFor(t);
  const out = join(folder, "papers");
  // Nobody listens there: what is not on this machine is not asked for, and not waited for.
  const nowhere = ["--connect-to", "doi.org:443:127.0.0.1:9", "--patience", "0"];
  const flags = [
    "--out",
    out,
    "--allow-private",
    "--quiet",
    "--no-telemetry",
    "--resolvers",
    "landing_page",
    ...nowhere,
  ];
  assert.equal((await cli(["run", `${origin}/articles/a`, ...flags])).code, 0);
  // What an earlier run has listed and not come to.
  const manifest = await openManifest(join(out, "manifest.sqlite"), systemTime);
  manifest.addWorks(manifest.beginRun("earlier"), [workOf({ doi: "10.5555/listed" })], () => true);
  manifest.close();
  const before = (await cli(["status", "--out", out, "--export", "-"])).stdout;
  const list = `${origin}/articles/a\n10.5555/listed\n10.5555/new\nnonsense!\n`;
  const refused = await cli(["run", "--input", "-", "--strict", "--refresh", ...flags], list);
  assert.deepEqual([refused.code, refused.stdout], [2, ""]);
  assert.equal((await cli(["status", "--out", out, "--export", "-"])).stdout, before);
  const taken = await cli(["run", "--input", "-", "--strict", "--json", ...flags], list.replace("nonsense!", ""));
  assert.deepEqual(JSON.parse(taken.stdout).works, {
    total: 3,
    done: 1,
    failed: 2,
    pending: 0,
    present: 1,
    problems: 0,
  });
});

test("a strict run does nothing when a line is wrong", async t => {
  const origin = await publisher(t);
  const folder = folderFor(t);
  const out = join(folder, "papers");
  writeFileSync(join(folder, "list.csv"), `title,url\nA,${origin}/articles/a\nB,nonsense\n`);
  const args = ["run", "--input", join(folder, "list.csv"), "--out", out, "--allow-private", "--quiet"];
  const strict = await cli([...args, "--strict", "--resolvers", "landing_page"]);
  assert.deepEqual([strict.code, strict.stdout], [2, ""]);
  assert.match(strict.stderr, /list\.csv:3: .*nonsense/);
  assert.match((await cli(["status", "--out", out])).stdout, /^0 works/);
  const lenient = await cli([...args, "--resolvers", "landing_page"]);
  assert.equal(lenient.code, 1);
  assert.match(lenient.stdout, /^1 of 1 work done, 1 line not understood/);
});

test("what is wrong with the flags is said at once, all of it, before anything is touched", async t => {
  const out = join(folderFor(t), "papers");
  const bad = ["--layout", "piles", "--formats", "pdf,doc", "--resolvers", "crosref", "--workers", "none"];
  const { code, stderr } = await cli(["run", "10.1234/a", "--out", out, ...bad]);
  assert.equal(code, 2);
  assert.match(stderr, /--layout: "piles" is none of flat, by-doi, content-addressed/);
  assert.match(stderr, /--formats: "doc" is none of pdf, xml, html/);
  assert.match(stderr, /--resolvers: "crosref" is none of .*; did you mean crossref\?/);
  assert.match(stderr, /--workers: "none" is no whole number from 1/);
  assert.equal(existsSync(out), false);
  assert.match((await cli(["run", "--out", out])).stderr, /nothing to get; name works, or give --input or --query/);
  assert.match((await cli(["status", "--out", out])).stderr, /there is no manifest/);
  assert.equal((await cli(["retry", "--out", out])).code, 2);
  assert.match(
    (await cli(["run", "--input", join(out, "none.txt"), "--out", out, "-q"])).stderr,
    /--input: there is no file .*none\.txt/,
  );
  assert.equal(existsSync(out), false);
});

test("a resolver that lacks its key is left out, and that is said once", async t => {
  const origin = await publisher(t);
  const out = join(folderFor(t), "papers");
  const works = [`${origin}/articles/a`, `${origin}/articles/b`];
  const { stderr, code } = await cli([
    "run",
    ...works,
    "--out",
    out,
    "--allow-private",
    "-q",
    "--resolvers",
    "core,landing_page",
  ]);
  assert.equal(code, 0);
  assert.equal(stderr, "core is left out: it needs CORE_API_KEY\n");
});

test("the demo keeps its promises, leaves nothing behind unless told to, and says where it is then", async t => {
  // A place of our own: somebody else on this machine may be at a demo, too.
  const { TMPDIR } = process.env;
  process.env["TMPDIR"] = folderFor(t);
  t.after(() => {
    if (TMPDIR === undefined) delete process.env["TMPDIR"];
    else process.env["TMPDIR"] = TMPDIR;
  });
  const left = () => readdirSync(tmpdir()).filter(name => name.startsWith("docstokg-demo-")).length;
  const gone = await cli(["demo", "--works", "6", "--seed", "5", "--json"]);
  assert.equal(gone.code, 0, gone.stdout);
  const facts = JSON.parse(gone.stdout);
  assert.deepEqual([facts.servers.rejected, facts.servers.blocked, facts.delivery.missing], [0, 0, []]);
  assert.equal(facts.delivery.right, facts.delivery.due);
  assert.ok(facts.bound.fastestMs <= facts.bound.runMs);
  assert.equal(left(), 0);
  const kept = await cli(["demo", "--works", "3", "--keep"]);
  const [, folder = ""] = /The files and the manifest are in (.*)\n/.exec(kept.stdout) ?? [];
  t.after(() => rmSync(folder, { recursive: true, force: true }));
  assert.ok(existsSync(join(folder, "manifest.sqlite")), kept.stdout);
  assert.equal((await cli(["demo", "--works", "none"])).code, 2);
});
