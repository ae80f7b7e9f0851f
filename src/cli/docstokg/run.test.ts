import assert from "node:assert/strict";
import { existsSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { basename, join } from "node:path";
import { type TestContext, test } from "node:test";
import { runCli } from "../../../test/cli/kit.ts";
import { pdf } from "../../../test/harvest/kit.ts";
import { serve } from "../../../test/http/kit.ts";
import { temporaryFolder } from "../../../test/temporary-folder.ts";
import { workOf } from "../../harvest/identifiers/identifiers.ts";
import { openManifest } from "../../harvest/manifest/manifest.ts";
import { systemTime } from "../../time/system-time.ts";
import { docstokg } from "../docstokg.ts";
import { type Io, runProgram } from "../program.ts";

/** A publisher whose article pages name their PDF in `citation_pdf_url`. */
async function publisher(t: TestContext): Promise<string> {
  const server = await serve(t, (request, response) => {
    const [, folder = "", name = ""] = (request.url ?? "").split("/");
    response.setHeader("content-type", "text/html");
    if (folder === "robots.txt") response.end("User-agent: *\nDisallow: /private/\n");
    else if (folder === "articles" && name !== "none")
      response.end(`<!doctype html><html><head><meta name="citation_pdf_url" content="/pdf/${name}"></head></html>`);
    else if (folder === "pdf") response.end(pdf(name));
    else response.end("<!doctype html><html><title>Nothing here</title></html>");
  });
  return server.origin;
}

test("run downloads the works of a list, and status and retry read its manifest", async t => {
  const origin = await publisher(t);
  const out = join(temporaryFolder("harvest"), "papers");
  const list = `${origin}/articles/a\nnonsense!\n${origin}/articles/none # no copy\n${origin}/private/x\n`;
  const flags = ["--out", out, "--allow-private", "--resolvers", "landing_page"];
  const ran = await runCli(["run", "--input", "-", ...flags], { input: list });
  assert.equal(ran.exitCode, 1, ran.stderr);
  assert.match(ran.stderr, /^backend memory, AIMD off/);
  assert.match(ran.stderr, /stdin:2: .*nonsense!.* is not a known identifier/);
  assert.match(ran.stdout, /^1 of 3 works done, 2 failed, 1 invalid line, in /);
  const advice = `To list the failures: docstokg status --out ${out}\nTo retry them: docstokg retry --failed --out ${out}\n`;
  assert.ok(ran.stdout.endsWith(`\n${advice}`), ran.stdout);
  const [file = ""] = readdirSync(out).filter(name => name.endsWith(".pdf"));
  assert.deepEqual(readFileSync(join(out, file)), pdf("a"));

  const status = await runCli(["status", "--out", out]);
  assert.equal(status.exitCode, 0);
  assert.match(status.stdout, /^3 works: 1 done, 2 failed, 0 unfinished\n1 file, 400 B\n/);
  assert.match(status.stdout, /failed\s+robots\s+1/);
  const json = JSON.parse((await runCli(["status", "--out", out, "--json"])).stdout);
  assert.deepEqual(json.works, { total: 3, done: 1, failed: 2, pending: 0, merged: 0 });

  const target = join(out, "export.jsonl");
  assert.equal((await runCli(["status", "--out", out, "--export", target])).exitCode, 0);
  const lines = readFileSync(target, "utf8").trimEnd().split("\n");
  assert.equal(lines.length, 3);
  assert.equal((await runCli(["status", "--out", out, "--export", "-"])).stdout, readFileSync(target, "utf8"));
  assert.deepEqual(
    lines.map(line => JSON.parse(line).reason),
    ["ok", "no-copy", "robots"],
  );

  const idle = await runCli(["retry", ...flags, "--json", "--quiet"]);
  assert.equal(JSON.parse(idle.stdout).works.total, 0);
  const again = await runCli(["retry", "--reason", "no-copy", ...flags, "--json", "--quiet"]);
  assert.deepEqual([again.exitCode, JSON.parse(again.stdout).works.failed, again.stderr], [1, 1, ""]);
});

test("a work that cannot be refreshed stays done with its file, and the run says so", async t => {
  let isGone = false;
  const server = await serve(t, (_, response) => (isGone ? response.writeHead(404).end() : response.end(pdf("a"))));
  const out = join(temporaryFolder("harvest"), "papers");
  const flags = ["--out", out, "--allow-private", "--resolvers", "landing_page"];
  const run = (...more: readonly string[]) => runCli(["run", `${server.origin}/a.pdf`, ...flags, ...more]);
  assert.equal((await run()).exitCode, 0);
  isGone = true;
  const refreshed = await run("--refresh");
  assert.equal(refreshed.exitCode, 1, refreshed.stderr);
  assert.match(refreshed.stdout, /^1 of 1 work done, 1 not refreshed, with the earlier file, in /);
  const status = await runCli(["status", "--out", out]);
  assert.match(status.stdout, /^1 work: 1 done, 0 failed, 0 unfinished\n1 file, 400 B\n/);
  assert.match(status.stdout, /done\s+http-status\s+1/);
  assert.equal((await runCli(["verify", "--out", out])).exitCode, 0);
  assert.equal((await run()).exitCode, 0);
});

test("a list that a strict run rejects leaves the manifest unchanged", async t => {
  const origin = await publisher(t);
  const folder = temporaryFolder("harvest");
  const out = join(folder, "papers");
  // Port 9 is closed: requests to doi.org fail at once.
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
  assert.equal((await runCli(["run", `${origin}/articles/a`, ...flags])).exitCode, 0);
  // A work that an earlier run has listed but not tried.
  const manifest = await openManifest(join(out, "manifest.sqlite"), systemTime);
  await manifest.works.add(await manifest.beginRun("earlier"), [workOf({ doi: "10.5555/listed" })], {
    isPresent: () => true,
  });
  await manifest.close();
  const before = (await runCli(["status", "--out", out, "--export", "-"])).stdout;
  const list = `${origin}/articles/a\n10.5555/listed\n10.5555/new\nnonsense!\n`;
  const refused = await runCli(["run", "--input", "-", "--strict", "--refresh", ...flags], { input: list });
  assert.deepEqual([refused.exitCode, refused.stdout], [2, ""]);
  assert.equal((await runCli(["status", "--out", out, "--export", "-"])).stdout, before);
  const taken = await runCli(["run", "--input", "-", "--strict", "--json", ...flags], {
    input: list.replace("nonsense!", ""),
  });
  assert.deepEqual(JSON.parse(taken.stdout).works, {
    total: 3,
    done: 1,
    failed: 2,
    pending: 0,
    merged: 0,
    notRefreshed: 0,
    present: 1,
    problems: 0,
  });
});

test("a strict run does nothing if one line is invalid", async t => {
  const origin = await publisher(t);
  const folder = temporaryFolder("harvest");
  const out = join(folder, "papers");
  writeFileSync(join(folder, "list.csv"), `title,url\nA,${origin}/articles/a\nB,nonsense\n`);
  const args = ["run", "--input", join(folder, "list.csv"), "--out", out, "--allow-private", "--quiet"];
  const years = await runCli(["run", "10.1234/a", "--from-year", "2021", "--to-year", "2020", "--out", out]);
  assert.deepEqual([years.exitCode, years.stderr], [2, "docstokg: --from-year: 2021 is after --to-year 2020\n"]);
  const strict = await runCli([...args, "--strict", "--resolvers", "landing_page"]);
  assert.deepEqual([strict.exitCode, strict.stdout], [2, ""]);
  assert.match(strict.stderr, /list\.csv:3: .*nonsense/);
  assert.match(strict.stderr, /\nNothing was downloaded: the list has 1 invalid line \(--strict\)\.\n$/);
  assert.match((await runCli(["status", "--out", out])).stdout, /^0 works/);
  const lenient = await runCli([...args, "--resolvers", "landing_page"]);
  assert.equal(lenient.exitCode, 1);
  assert.match(lenient.stdout, /^1 of 1 work done, 1 invalid line/);
});

test("all invalid flags are reported together, before a file is written", async () => {
  const out = join(temporaryFolder("harvest"), "papers");
  const bad = ["--layout", "piles", "--formats", "pdf,doc", "--resolvers", "crosref", "--workers", "none"];
  const { exitCode, stderr } = await runCli(["run", "10.1234/a", "--out", out, ...bad]);
  assert.equal(exitCode, 2);
  assert.match(stderr, /--layout: "piles" is not one of flat, by-doi, content-addressed/);
  assert.match(stderr, /--formats: "doc" is not one of pdf, xml, html/);
  assert.match(stderr, /--resolvers: "crosref" is not one of .*; did you mean crossref\?/);
  assert.match(stderr, /--workers: "none" is not a whole number of at least 1/);
  assert.equal(existsSync(out), false);
  assert.match((await runCli(["run", "--out", out])).stderr, /no works given: pass identifiers, --input or --query/);
  assert.match((await runCli(["status", "--out", out])).stderr, /manifest not found: /);
  assert.equal((await runCli(["retry", "--out", out])).exitCode, 2);
  assert.match(
    (await runCli(["run", "--input", join(out, "none.txt"), "--out", out, "-q"])).stderr,
    /--input: file not found: .*none\.txt/,
  );
  const folder = temporaryFolder("harvest");
  const noFile = await runCli(["run", "--input", folder, "--out", out, "-q"]);
  assert.deepEqual(
    [noFile.exitCode, noFile.stderr],
    [2, `docstokg: --input: ${folder} is a folder; expected a file\n`],
  );
  const sheet = join(folder, "list.xlsx");
  writeFileSync(sheet, "PK\x03\x04\x14\0\0\0 xl/workbook.xml\n10.5555/a\n");
  const binary = await runCli(["run", "--input", sheet, "--out", out, "-q"]);
  assert.equal(binary.exitCode, 2);
  assert.match(binary.stderr, /list\.xlsx is not a text file \(it contains NUL bytes\); save a spreadsheet as CSV/);
  assert.equal(existsSync(out), false);
});

test("a JSON, HTML or XML document is refused as a list of works", async () => {
  const folder = temporaryFolder("harvest");
  const out = join(folder, "papers");
  const expected = "expected one identifier on each line, or CSV, JSONL (one object on each line), BibTeX or RIS";
  for (const [name, content, kind] of [
    [
      "csl.json",
      '[\n  {\n    "id": "http://zotero.example/users/1/items/ABC",\n    "DOI": "10.5555/a"\n  }\n]\n',
      "a JSON",
    ],
    ["one.json", '[{"DOI":"10.5555/a"}]', "a JSON"],
    ["rows.txt", '\uFEFF{"doi":"10.5555/a"}\n', "a JSON"],
    ["page.txt", '<!DOCTYPE html>\n<a href="https://doi.example/10.5555/a">', "an HTML or XML"],
    ["endnote.xml", '<?xml version="1.0"?><xml><records/></xml>', "an HTML or XML"],
  ] as const) {
    const file = join(folder, name);
    writeFileSync(file, content);
    const { exitCode, stderr } = await runCli(["run", "--input", file, "--out", out, "--dry-run"]);
    assert.deepEqual([exitCode, stderr], [2, `docstokg: --input: ${file} is ${kind} document; ${expected}\n`]);
  }
  assert.equal(existsSync(out), false);
  const lines = join(folder, "lines.txt");
  writeFileSync(lines, "<https://doi.example/10.5555/a>\n");
  assert.equal((await runCli(["run", "--input", lines, "--out", out, "--dry-run"])).exitCode, 0);
  const rows = join(folder, "rows.txt");
  assert.equal(
    (await runCli(["run", "--input", rows, "--input-format", "jsonl", "--out", out, "--dry-run"])).exitCode,
    0,
  );
});

test("flags without an effect are refused, each with the flag that it needs", async () => {
  const folder = temporaryFolder("harvest");
  const out = join(folder, "papers");
  const idle = ["--max", "5", "--column", "doi"];
  const { exitCode, stderr } = await runCli(["run", "10.1234/a", "--out", out, ...idle]);
  assert.equal(exitCode, 2);
  assert.match(stderr, /--max: has no effect without --query/);
  assert.match(stderr, /--column: has no effect without --input/);
  const year = await runCli(["run", "--query", "x", "--from-year", "last", "--out", out]);
  assert.deepEqual(
    [year.exitCode, year.stderr],
    [2, 'docstokg: --from-year: "last" is not a whole number of at least 0\n'],
  );
  const strict = await runCli(["run", "--query", "x", "--strict", "--out", out]);
  assert.match(strict.stderr, /--strict: has no effect without a list/);
  for (const [extension, format] of [
    ["txt", "lines"],
    ["bib", "bibtex"],
    ["ris", "ris"],
  ]) {
    const list = join(folder, `list.${extension}`);
    writeFileSync(list, "10.1234/a\n");
    const column = await runCli(["run", "--input", list, "--column", "doi", "--out", out]);
    assert.equal(
      column.stderr,
      `docstokg: --column: has no effect on ${format} input; only csv and jsonl have columns\n`,
    );
  }
  assert.equal(existsSync(out), false);
});

test("a filter that is empty or no year, and several formats of --metadata, are refused before a folder is made", async () => {
  const out = join(temporaryFolder("harvest"), "papers");
  for (const [flags, message] of [
    [["--licence", ""], "--licence: the list is empty; expected names, separated by commas"],
    [["--type", " , "], "--type: the list is empty; expected names, separated by commas"],
    [["--from-year", "202"], "--from-year: expected a year from 1000 to 2999, found 202"],
    [["--to-year", "20240"], "--to-year: expected a year from 1000 to 2999, found 20240"],
    [["--metadata", "csl,bibtex"], '--metadata: "csl,bibtex" is not one of csl, bibtex, json'],
    [["--enqueue-only"], "--enqueue-only: needs a PostgreSQL manifest: --manifest postgres://user@host/database"],
    [["--dry-run", "--refresh"], "--refresh: has no effect with --dry-run"],
    [["--dry-run", "--enqueue-only"], "--enqueue-only: has no effect with --dry-run"],
  ] as const) {
    // A closed port of this machine: no request leaves it, even if the flags are accepted.
    const work = ["http://127.0.0.1:9/a.pdf", "--resolvers", "landing_page"];
    const { exitCode, stderr } = await runCli(["run", ...work, "--out", out, "-q", ...flags]);
    assert.deepEqual([exitCode, stderr], [2, `docstokg: ${message}\n`]);
    assert.equal(existsSync(out), false, message);
  }
});

test("a CSV list without the column of the identifiers is an error that names its columns, before a folder is made", async () => {
  const folder = temporaryFolder("harvest");
  const out = join(folder, "papers");
  const list = join(folder, "list.csv");
  writeFileSync(list, "title,digital\nA,10.5555/a\n");
  const noColumn =
    /^docstokg: .*list\.csv: none of the columns doi, .* was found; name the column with --column; columns found: title, digital\n$/;
  const wrong =
    /^docstokg: --column: column digitl not found; did you mean digital\?; columns found: title, digital\n$/;
  for (const mode of [["--dry-run"], ["-q"]])
    for (const [flags, expected] of [
      [[], noColumn],
      [["--column", "digitl"], wrong],
    ] as const) {
      const ran = await runCli(["run", "--input", list, "--out", out, ...mode, ...flags]);
      assert.deepEqual([ran.exitCode, ran.stdout, existsSync(out)], [2, "", false]);
      assert.match(ran.stderr, expected);
    }
  const flags = ["--input-format", "csv", "--column", "digitl", "--dry-run"];
  const piped = await runCli(["run", "--input", "-", ...flags, "--out", out], { input: readFileSync(list, "utf8") });
  assert.equal(piped.exitCode, 2);
  assert.match(piped.stderr, /^docstokg: --column: column digitl not found;/m);
});

test("an empty list is reported", async () => {
  const folder = temporaryFolder("harvest");
  const list = join(folder, "list.txt");
  writeFileSync(list, "# no works\n");
  const flags = ["--out", join(folder, "papers"), "-q", "--resolvers", "landing_page", "--json"];
  const { exitCode, stdout, stderr } = await runCli(["run", "--input", list, ...flags]);
  assert.deepEqual([exitCode, stderr, JSON.parse(stdout).works.total], [0, "The list contains no works.\n", 0]);
});

test("a resolver without its API key is skipped, with one message", async t => {
  const origin = await publisher(t);
  const out = join(temporaryFolder("harvest"), "papers");
  const works = [`${origin}/articles/a`, `${origin}/articles/b`];
  const { stderr, exitCode } = await runCli([
    "run",
    ...works,
    "--out",
    out,
    "--allow-private",
    "-q",
    "--resolvers",
    "core,landing_page",
  ]);
  assert.equal(exitCode, 0);
  assert.equal(stderr, "resolver core skipped: set CORE_API_KEY\n");
});

test("an interrupted demo deletes its folder, and names it with --keep", async t => {
  const { TMPDIR } = process.env;
  process.env["TMPDIR"] = temporaryFolder("harvest");
  t.after(() => {
    if (TMPDIR === undefined) delete process.env["TMPDIR"];
    else process.env["TMPDIR"] = TMPDIR;
  });
  const folders = () => readdirSync(tmpdir()).filter(name => name.startsWith("docstokg-demo-"));
  const onInterrupt = (listener: () => void) => {
    listener();
    return () => undefined;
  };
  const deleted = await runCli(["demo", "--works", "3"], { onInterrupt });
  assert.deepEqual([deleted.exitCode, deleted.stdout, folders()], [130, "", []]);
  assert.equal(
    deleted.stderr,
    "Interrupted before the end of the demo. Its servers are closed and its output folder is deleted (--keep keeps it).\n",
  );
  const kept = await runCli(["demo", "--works", "3", "--keep"], { onInterrupt });
  assert.deepEqual([kept.exitCode, kept.stdout], [130, ""]);
  const [, folder = ""] = /^The output folder (.*) was kept\.$/m.exec(kept.stderr) ?? [];
  assert.match(kept.stderr, /^Interrupted before the end of the demo\. Its servers are closed\.\n/);
  assert.deepEqual(folders(), [basename(folder)]);
});

test("a demo that is interrupted while it downloads says so last, when nothing of it is left", async t => {
  const { TMPDIR } = process.env;
  process.env["TMPDIR"] = temporaryFolder("harvest");
  t.after(() => {
    if (TMPDIR === undefined) delete process.env["TMPDIR"];
    else process.env["TMPDIR"] = TMPDIR;
  });
  const listeners = new Set<() => void>();
  const interrupt = () => {
    for (const listener of [...listeners]) listener();
  };
  let stderr = "";
  const io: Io = {
    argv: ["demo", "--works", "3"],
    env: {},
    stdout: { write: text => assert.fail(text) },
    stderr: {
      write: text => {
        stderr += text;
        if (/^One publisher is down/m.test(text)) systemTime.setTimer(200, interrupt);
      },
    },
    onInterrupt: listener => {
      listeners.add(listener);
      return () => listeners.delete(listener);
    },
  };
  assert.equal(await runProgram(docstokg, io), 130);
  assert.match(
    stderr,
    /\nStopping: .*\n(?:.*\n)*Interrupted before the end of the demo\..* is deleted \(--keep keeps it\)\.\n$/,
  );
  assert.deepEqual([readdirSync(tmpdir()), listeners.size], [[], 0]);
});

test("the demo downloads every file, exits with 0 unless a server rejected a request, and deletes its folder unless --keep is set", async t => {
  // A temporary folder of this test: another demo may run on this machine.
  const { TMPDIR } = process.env;
  process.env["TMPDIR"] = temporaryFolder("harvest");
  t.after(() => {
    if (TMPDIR === undefined) delete process.env["TMPDIR"];
    else process.env["TMPDIR"] = TMPDIR;
  });
  const left = () => readdirSync(tmpdir()).filter(name => name.startsWith("docstokg-demo-")).length;
  const deleted = await runCli(["demo", "--works", "6", "--seed", "5", "--json"]);
  const facts = JSON.parse(deleted.stdout);
  // Starved servers may reject by their own clock (npm run soak measures it), and the demo then says so.
  assert.equal(deleted.exitCode, facts.servers.rejected === 0 ? 0 : 1, deleted.stdout);
  assert.deepEqual([facts.servers.blocked, facts.comparison.missing], [0, []]);
  assert.equal(facts.comparison.matching, facts.comparison.expected);
  assert.ok(facts.bound.fastestMs <= facts.bound.runMs);
  assert.equal(left(), 0);
  const kept = await runCli(["demo", "--works", "3", "--keep"]);
  const [, folder = ""] = /Files and manifest: (.*)\n/.exec(kept.stdout) ?? [];
  t.after(() => rmSync(folder, { recursive: true, force: true }));
  assert.ok(existsSync(join(folder, "manifest.sqlite")), kept.stdout);
  assert.equal((await runCli(["demo", "--works", "none"])).exitCode, 2);
});

test("a --dashboard-port in use is an error before anything is recorded", async t => {
  const server = await serve(t, (_, response) => response.end());
  const { port } = new URL(server.origin);
  const out = join(temporaryFolder("harvest"), "papers");
  const ran = await runCli(["run", "10.1234/a", "--out", out, "--quiet", "--dashboard-port", port]);
  assert.equal(ran.exitCode, 1);
  assert.match(ran.stderr, /--dashboard-port: cannot listen on 127\.0\.0\.1:\d+: .*EADDRINUSE/);
  assert.deepEqual(readdirSync(out), []);
});
