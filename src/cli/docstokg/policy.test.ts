import assert from "node:assert/strict";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { docstokg } from "../docstokg.ts";
import { runProgram } from "../program.ts";

let folder = "";
before(async () => {
  folder = await mkdtemp(join(tmpdir(), "docstokg-cli-"));
});
after(() => rm(folder, { recursive: true }));

async function run(argv: readonly string[], env: Readonly<Record<string, string>> = {}) {
  let stdout = "";
  let stderr = "";
  const io = {
    argv,
    env,
    stdout: { write: (text: string) => (stdout += text) },
    stderr: { write: (text: string) => (stderr += text) },
  };
  const exitCode = await runProgram(docstokg, io);
  return { exitCode, stdout, stderr };
}

async function file(name: string, text: string): Promise<string> {
  const path = join(folder, name);
  await writeFile(path, text);
  return path;
}

test("policy show prints a table that fits a terminal", async () => {
  const { exitCode, stdout } = await run(["policy", "show"]);
  assert.equal(exitCode, 0);
  assert.match(stdout, /^backend memory, aimd off, at most 500 in flight\n/);
  assert.match(stdout, /^host +role +rates +max delay +HEAD +at once +fails \/ reset$/m);
  assert.match(stdout, /^api\.crossref\.org +metadata +4\/SECOND \+ 10000\/HOUR +1000 ms +counts +1 +5 \/ 60 s$/m);
  assert.match(stdout, /^group arxiv +export\.arxiv\.org, /m);
  const table = stdout.slice(0, stdout.indexOf("\ngroup "));
  assert.ok(Math.max(...table.split("\n").map(line => line.length)) <= 120);
});

test("policy show answers for one host, and for programs", async () => {
  const { stdout } = await run([
    "policy",
    "show",
    "--host",
    "API.crossref.org",
    "--json",
    "--rate",
    "api.crossref.org:metadata=rates:1/s",
  ]);
  const rows = JSON.parse(stdout);
  assert.deepEqual(rows.map(({ role, rates }: { role: string; rates: string }) => [role, rates]).slice(0, 1), [
    ["metadata", "1/SECOND"],
  ]);
  assert.equal(rows.length, 4);
});

test("policy explain names every layer that spoke, the last one marked", async () => {
  const yaml = await file("ratelimits.yaml", 'hosts: { api.crossref.org: { metadata: { rates: "3/s" } } }\n');
  const { exitCode, stdout } = await run(
    ["policy", "explain", "https://api.crossref.org/works/10.1/x", "--rate", "api.crossref.org:metadata=rates:1/s"],
    { DOCSTOKG_RLIMITS_YAML: yaml, DOCSTOKG_RLIMITS: "api.crossref.org:metadata=rates:2/s" },
  );
  assert.equal(exitCode, 0);
  const lines = stdout.split("\n");
  const at = lines.findIndex(line => line.startsWith("rates "));
  const said = lines.slice(at, at + 6).map(line => line.replace(folder, "").trim().replace(/ {2,}/g, " | "));
  assert.deepEqual(said.slice(3), [
    "3/s | /ratelimits.yaml:1 | hosts.api.crossref.org.metadata.rates",
    "2/s | DOCSTOKG_RLIMITS | hosts.api.crossref.org.metadata.rates",
    "= | 1/s | --rate | hosts.api.crossref.org.metadata.rates",
  ]);
});

test("a port counts only where the policy names it", async () => {
  const flag = ["--rate", "a.example:metadata=rates:7/s", "--rate", "a.example:8443:metadata=rates:8/s"];
  assert.match(
    (await run(["policy", "explain", "https://a.example:8443/x", ...flag])).stdout,
    /^a\.example:8443 .*[\s\S]*= +8\/s/,
  );
  assert.match(
    (await run(["policy", "explain", "https://a.example:9999/x", ...flag])).stdout,
    /^a\.example .*[\s\S]*= +7\/s/,
  );
});

test("policy explain knows groups, and splits a host by the path of a URL", async () => {
  assert.match(
    (await run(["policy", "explain", "arxiv.org", "artifact"])).stdout,
    /^arxiv\.org \(artifact\), as a member of group arxiv\n/,
  );
  const { stdout } = await run(["policy", "explain", "https://www.ebi.ac.uk/ols4/api", "--json"]);
  assert.equal(JSON.parse(stdout).host, "www.ebi.ac.uk");
  assert.match(stdout, /groups\.ols4/);
});

test("policy check finds the shipped policy without fault", async () => {
  assert.deepEqual(await run(["policy", "check"]), { exitCode: 0, stdout: "0 problems, 0 warnings\n", stderr: "" });
});

test("policy check lists every problem of a file and exits with 2", async () => {
  const bad = await file(
    "bad-ratelimits.yaml",
    "hosts:\n  a.example: { metadata: { rate: 1/s } }\n  b.example: { artifact: { rates: 5 } }\n",
  );
  const { exitCode, stdout, stderr } = await run(["policy", "check", bad]);
  assert.equal(exitCode, 2);
  assert.equal(stdout.replace(folder, ""), "/bad-ratelimits.yaml: ratelimits, 2 problems\n2 problems, 0 warnings\n");
  assert.match(
    stderr,
    /bad-ratelimits\.yaml:3: hosts\.b\.example\.artifact\.rates: expected a rate such as 10\/SECOND, or a list of rates, found 5/,
  );
  assert.match(stderr, /bad-ratelimits\.yaml:2: hosts\.a\.example\.metadata\.rate: unknown key; did you mean rates\?/);
  const { stdout: json } = await run(["policy", "check", bad, "--json"]);
  assert.equal(JSON.parse(json).problems.length, 2);
});

test("policy check warns of limits and variables that will not do what their author wants", async () => {
  const { exitCode, stdout, stderr } = await run(
    ["policy", "check", "--rate", "a.example:metadata=rates:1/3SECOND,max_delay_ms:150"],
    {
      DOCSTOKG_RLIMTS: "x",
    },
  );
  assert.equal(exitCode, 0);
  assert.equal(stdout, "0 problems, 2 warnings\n");
  assert.match(stderr, /warning: a\.example metadata: max_delay_ms 150 is shorter than the 3000 ms/);
  assert.match(stderr, /warning: DOCSTOKG_RLIMTS is no variable of ours; did you mean DOCSTOKG_RLIMITS\?/);
});

test("a wrong role, host or flag is a clear message and exit code 2", async () => {
  for (const [argv, expected] of [
    [["policy", "explain", "a.example", "metdata"], /"metdata" is no role; the roles are metadata, landing, artifact/],
    [["policy", "explain", "not a host"], /"not a host" is neither a host nor a URL/],
    [["policy", "explain", "ftp://a.example"], /ftp/],
    [["policy", "explain", "https://u:secret@bad host/"], /^(?!.*secret).*neither a host nor a URL/],
    [["policy", "show", "--rate-backend", "redis://u:secret@a.example"], /^(?!.*secret).*backend\.kind/],
    [["policy", "show", "--breaker-role", "a.example=fail_max:3"], /--breaker-role: "a\.example" is not <host>:<role>/],
    [["policy", "show", "--rate", "a.example=rates:1/s"], /--rate: "a\.example" is not <host>:<role>/],
    [
      ["policy", "show", "--rate", "a.example:metadata=rates:8"],
      /--rate: hosts\.a\.example\.metadata\.rates: "8" is not a rate/,
    ],
    [["policy"], /Usage: docstokg policy/],
    [["policy", "shwo"], /Did you mean show\?/],
  ] as const) {
    const { exitCode, stderr } = await run(argv);
    assert.equal(exitCode, 2, argv.join(" "));
    assert.match(stderr, expected);
  }
});

test("a file that is not YAML has a handful of problems, not hundreds", async () => {
  const path = await file("readme.yaml", "# A title\n\n**text**: [a](b), `c`: d\n".repeat(40));
  const { exitCode, stdout, stderr } = await run(["policy", "check", path]);
  assert.equal(exitCode, 2);
  const lines = (stdout + stderr).split("\n").filter(line => line.startsWith(`${path}:`));
  assert.ok(lines.length <= 8, lines.join("\n"));
  assert.match(stdout + stderr, /and \d+ more; is this a policy in YAML\?/);
});
