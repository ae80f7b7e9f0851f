import assert from "node:assert/strict";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, test } from "node:test";
import type { PolicyRow } from "../../policy/policy-row.ts";
import { docstokg } from "../docstokg.ts";
import { runProgram } from "../program.ts";

let folder = "";
before(async () => {
  folder = await mkdtemp(join(tmpdir(), "docstokg-cli-"));
});
after(() => rm(folder, { recursive: true }));

async function run(argv: readonly string[], env: Readonly<Record<string, string>> = {}, columns?: number) {
  let stdout = "";
  let stderr = "";
  const io = {
    argv,
    env,
    stdout: { write: (text: string) => (stdout += text), isTTY: columns !== undefined, columns },
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

test("policy show prints settings, limits, breakers and services", async () => {
  const { exitCode, stdout } = await run(["policy", "show"]);
  assert.equal(exitCode, 0);
  assert.match(stdout, /^backend +memory\nin flight +at most 500 requests over all hosts\nAIMD +off\n/);
  assert.match(stdout, /^rolling window +6 failures in 30 s start a cooldown of 60 s$/m);
  assert.match(stdout, /^limits +role +rates +max delay +HEAD +slots +mode$/m);
  assert.match(stdout, /^api\.crossref\.org +metadata +4\/SECOND \+ 10000\/HOUR +1000 ms +counted +1 +enforce$/m);
  assert.match(stdout, /^breakers +role +failures \/ reset +Retry-After cap +trial calls +mode$/m);
  assert.match(stdout, /^api\.crossref\.org +metadata +5 \/ 60 s +900 s +1 +enforce$/m);
  assert.match(stdout, /^resolver landing_page +4 \/ 45 s +1$/m);
  assert.match(stdout, /^arxiv +export\.arxiv\.org, /m);
  assert.equal(stdout.match(/^service arxiv +metadata +1\/3SECOND /gm)?.length, 1);
  assert.equal(stdout.match(/^service arxiv +metadata +3 \/ 180 s +900 s /gm)?.length, 1);
});

test("policy explain - lists the rules that recognise throttles apart from the values, with their sources", async () => {
  const breakers = await file("rule-breakers.yaml", "hosts:\n  a.example: { throttles: [{ header: x-limit }] }\n");
  const env = { DOCSTOKG_BREAKERS_YAML: breakers };
  const { stdout } = await run(["policy", "explain", "a.example"], env);
  const section = stdout.slice(stdout.indexOf("throttle rules"), stdout.indexOf("sources of the effective"));
  assert.match(section, /^throttle rules, all of them apply\n\nstatus 403, 503; header cf-mitigated: challenge\n/);
  assert.match(section, /^header x-limit\n {4}.*rule-breakers\.yaml:2 {2}hosts\.a\.example\.throttles$/m);
  assert.doesNotMatch(stdout, /breaker\.throttles +=/);
  const { values } = JSON.parse((await run(["policy", "explain", "a.example", "--json"], env)).stdout);
  const own = values.find(({ field }: { field: string }) => field === "a.example breaker.throttles");
  assert.deepEqual(own.value, ["header x-limit"]);
});

test("policy show - slow calls that start a cooldown are a part of the rolling window", async () => {
  const breakers = await file("slow-breakers.yaml", "advanced: { rolling_window: { slow_call_ms: 5000 } }\n");
  const env = { DOCSTOKG_BREAKERS_YAML: breakers };
  assert.match(
    (await run(["policy", "show"], env)).stdout,
    /^rolling window +6 failures in 30 s, or 50 % of the calls \(at least 10\) slower than 5000 ms, start a/m,
  );
  const { settings } = JSON.parse((await run(["policy", "show", "--json"], env)).stdout);
  assert.deepEqual(settings.rollingWindow.slowCalls, { slowerThanMs: 5000, share: 0.5, minCalls: 10 });
  const plain = JSON.parse((await run(["policy", "show", "--json"])).stdout);
  assert.equal(plain.settings.rollingWindow.slowCalls, null);
});

test("policy show and policy explain use the same words for the store of the breakers and for slots", async () => {
  const shown = (await run(["policy", "show"])).stdout;
  const explained = (await run(["policy", "explain", "api.crossref.org"])).stdout;
  assert.match(shown, /^cooldown store +none \(same as backend\)$/m);
  assert.match(explained, /^ += +none \(same as backend\) +breakers\.yaml/m);
  assert.match(shown, /^slots: the lowest max_concurrent of the role and of the totals that include it$/m);
  // The role has 100, and its total has 1.
  assert.match(explained, /^slots: 1, the lowest max_concurrent of the role and of the totals that include it$/m);
});

test("policy show and policy explain print the same slots for every listed host and role", async () => {
  const { rows } = JSON.parse((await run(["policy", "show", "--json"])).stdout);
  const hosts = rows.filter(({ host, mode }: PolicyRow) => mode !== undefined && /^[a-z0-9.-]+$/.test(host));
  assert.ok(hosts.length > 50);
  for (const { host, role, maxConcurrent } of hosts.slice(0, 60)) {
    const { stdout } = await run(["policy", "explain", host, role]);
    assert.equal(/^slots: (\d+),/m.exec(stdout)?.[1], String(maxConcurrent), `${host} ${role}`);
  }
});

test("policy show names the flag --host if its value is not a host", async () => {
  const { stderr } = await run(["policy", "show", "--host", "x..y"]);
  assert.match(stderr, /^docstokg: --host: "x\.\.y" is not a host/);
});

test("policy show prints one host with --host, and JSON with --json", async () => {
  const { stdout } = await run([
    "policy",
    "show",
    "--host",
    "API.crossref.org",
    "--json",
    "--rate",
    "api.crossref.org:metadata=rates:1/s",
  ]);
  const { settings, rows, breakers, services } = JSON.parse(stdout);
  assert.deepEqual(rows.map(({ role, rates }: { role: string; rates: string }) => [role, rates]).slice(0, 1), [
    ["metadata", "1/SECOND"],
  ]);
  assert.equal(rows.length, 4);
  assert.deepEqual(
    breakers.map(({ role }: { role: string }) => role),
    ["metadata", "landing", "artifact"],
  );
  assert.equal(settings.backend, "memory");
  assert.deepEqual(services, []);
});

test("policy explain prints every source of a value, and marks the effective one", async () => {
  const yaml = await file("ratelimits.yaml", 'hosts: { api.crossref.org: { metadata: { rates: "3/s" } } }\n');
  const { exitCode, stdout } = await run(
    ["policy", "explain", "https://api.crossref.org/works/10.1/x", "--rate", "api.crossref.org:metadata=rates:1/s"],
    { DOCSTOKG_RLIMITS_YAML: yaml, DOCSTOKG_RLIMITS: "api.crossref.org:metadata=rates:2/s" },
  );
  assert.equal(exitCode, 0);
  const lines = stdout.split("\n");
  const at = lines.findIndex(line => line.startsWith("rates "));
  const sources = lines.slice(at, at + 6).map(line => line.replace(folder, "").trim().replace(/ {2,}/g, " | "));
  assert.deepEqual(sources.slice(3), [
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

test("policy explain finds the service of a host, and of a path in a URL", async () => {
  assert.match(
    (await run(["policy", "explain", "arxiv.org", "artifact"])).stdout,
    /^arxiv\.org \(artifact\), member of service arxiv\n/,
  );
  const { stdout } = await run(["policy", "explain", "https://www.ebi.ac.uk/ols4/api", "--json"]);
  assert.equal(JSON.parse(stdout).host, "www.ebi.ac.uk");
  assert.match(stdout, /services\.ols4/);
});

test("policy explain reads host: and service: as overrides do, in any case", async () => {
  for (const target of ["host:zenodo.org", "HOST:zenodo.org:8080"])
    assert.match(
      (await run(["policy", "explain", target])).stdout,
      /^zenodo\.org \(metadata\), listed in the policy\n/,
    );
  assert.match((await run(["policy", "explain", "host:arxiv"])).stdout, /^arxiv \(metadata\), not listed: /);
  assert.match((await run(["policy", "explain", "Service:arxiv"])).stdout, /^service arxiv \(metadata\): /);
});

test("policy explain prints the tier of a key, and the source of each effective number", async () => {
  const key = { NCBI_API_KEY: "0123456789-secret" };
  const { stdout } = await run(["policy", "explain", "eutils.ncbi.nlm.nih.gov"], key);
  assert.match(stdout, /^eutils\.ncbi\.nlm\.nih\.gov \(metadata\), member of service ncbi, with NCBI_API_KEY$/m);
  assert.match(stdout, /^ += {2}8\/SECOND +ratelimits\.yaml \(shipped\):\d+ {2}services\.ncbi\.with\.NCBI_API_KEY\./m);
  assert.match(stdout, /^rates\n {4}a fifth below 10\/s; support\.nlm\.nih\.gov KA-05318, read 2026-11$/m);
  assert.doesNotMatch(stdout, /secret/);
});

test("policy explain and policy show of a URL that does not get the key have the limits without it", async () => {
  const key = { NCBI_API_KEY: "0123456789-secret" };
  for (const [url, isKeyed] of [
    ["https://eutils.ncbi.nlm.nih.gov/entrez", true],
    ["http://eutils.ncbi.nlm.nih.gov/entrez", false],
    ["https://eutils.ncbi.nlm.nih.gov:8443/entrez", false],
    ["eutils.ncbi.nlm.nih.gov:443", true],
    ["eutils.ncbi.nlm.nih.gov:8443", false],
  ] as const) {
    const { stdout } = await run(["policy", "explain", url], key);
    const keys = isKeyed ? ", with NCBI_API_KEY" : ", without NCBI_API_KEY, which this URL does not get";
    assert.equal(
      stdout.split("\n\n")[0]?.replaceAll("\n", " "),
      `eutils.ncbi.nlm.nih.gov (metadata), member of service ncbi${keys}`,
      url,
    );
    const { stdout: explained } = await run(["policy", "explain", url, "--json"], key);
    const name = isKeyed ? "service ncbi with NCBI_API_KEY" : "service ncbi";
    assert.equal(JSON.parse(explained).key, name, url);
    const { stdout: shown } = await run(["policy", "show", "--host", url, "--json"], key);
    assert.equal(JSON.parse(shown).rows[0].host, name, url);
  }
});

test("policy explain explains a service, the defaults and a resolver", async () => {
  const explained = async (target: string) => JSON.parse((await run(["policy", "explain", target, "--json"])).stdout);
  for (const target of ["arxiv", "service:arxiv"]) {
    const { service, role, host, values } = await explained(target);
    assert.deepEqual([service, role, host], ["arxiv", "metadata", undefined]);
    const total = values.find(({ field }: { field: string }) => field === "service arxiv total.guard_ms");
    assert.equal(total.sources.at(-1).path, "services.arxiv.total.guard_ms");
  }
  const { values } = await explained("defaults");
  const rates = values.find(({ field }: { field: string }) => field === "rates");
  assert.equal(rates.sources.at(-1).path, "defaults.metadata.rates");
  const resolver = await explained("resolver:landing_page");
  assert.equal(resolver.values[0].sources.at(-1).path, "resolvers.landing_page.fail_max");
  assert.match(
    (await run(["policy", "explain", "resolver:other"])).stdout,
    /^resolver other, not listed: the defaults/,
  );
});

test("policy show and policy explain fit 80 and 40 columns", async () => {
  for (const columns of [80, 40]) {
    for (const command of [
      ["policy", "show"],
      ["policy", "explain", "export.arxiv.org"],
    ]) {
      const { stdout } = await run(command, {}, columns);
      const widest = Math.max(...stdout.split("\n").map(line => line.length));
      assert.ok(widest <= columns, `${command.join(" ")}: ${widest} > ${columns}`);
    }
  }
  const { stdout: shown } = await run(["policy", "show"], {}, 80);
  assert.match(shown, /^limits\n {2}role +rates +max delay +HEAD +slots +mode\n\(all other hosts\)\n {2}metadata /m);
  assert.match(shown, /^ {2}metadata +5\/SECOND \+ 5000\/HOUR \+ 80000\/DAY +1000 ms +counted +4 +enforce$/m);
  const { stdout: long } = await run(["policy", "show"], {}, 40);
  assert.match(
    long,
    /^limits: api\.crossref\.org\nrole: metadata\nrates: 4\/SECOND \+ 10000\/HOUR\nmax delay: 1000 ms\nHEAD: counted\nslots: 1\nmode: enforce\n/m,
  );
  const { stdout: explained } = await run(["policy", "explain", "export.arxiv.org"], {}, 80);
  assert.match(
    explained,
    /^= 1\/3SECOND \+ 1000\/DAY\n {4}ratelimits\.yaml \(shipped\):\d+ {2}services\.arxiv\.metadata\.rates$/m,
  );
});

test("policy check has no problems and no warnings for the shipped policy", async () => {
  const { exitCode, stdout, stderr } = await run(["policy", "check", "--strict"]);
  assert.deepEqual([exitCode, stderr], [0, ""]);
  assert.match(stdout, /^0 problems, 0 warnings, \d+ notices\n$/m);
  assert.match(
    stdout,
    /^notice: service ncbi: NCBI_API_KEY is not set; with it total 10\/SECOND instead of 3\/SECOND, .* \[key-gain\]$/m,
  );
});

test("policy check lists every problem of a file and exits with 2", async () => {
  const bad = await file(
    "bad-ratelimits.yaml",
    "hosts:\n  a.example: { metadata: { rate: 1/s } }\n  b.example: { artifact: { rates: 5 } }\n",
  );
  const { exitCode, stdout, stderr } = await run(["policy", "check", bad]);
  assert.equal(exitCode, 2);
  assert.equal(
    stdout.replace(folder, ""),
    "/bad-ratelimits.yaml: ratelimits, 2 problems\n2 problems, 0 warnings, 0 notices\n",
  );
  assert.match(
    stderr,
    /bad-ratelimits\.yaml:3: hosts\.b\.example\.artifact\.rates: expected a rate such as 10\/SECOND, a list of rates, or none for no rate limit, found 5/,
  );
  assert.match(stderr, /bad-ratelimits\.yaml:2: hosts\.a\.example\.metadata\.rate: unknown key; did you mean rates\?/);
  const { stdout: json } = await run(["policy", "check", bad, "--json"]);
  assert.equal(JSON.parse(json).problems.length, 2);
});

test("policy check warns of settings that probably do not do what their author wants", async () => {
  const { exitCode, stdout, stderr } = await run(
    ["policy", "check", "--rate", "a.example:metadata=rates:1/3SECOND,max_delay_ms:150"],
    {
      DOCSTOKG_RLIMTS: "x",
    },
  );
  assert.equal(exitCode, 0);
  assert.match(stdout, /^0 problems, 2 warnings, \d+ notices\n$/m);
  assert.match(stderr, /warning: a\.example metadata: max_delay_ms 150 is less than the 3000 ms between calls/);
  assert.match(stderr, /warning: unknown environment variable DOCSTOKG_RLIMTS; did you mean DOCSTOKG_RLIMITS\?/);
});

test("policy check gives a file the same warnings as without a file, and checks the flags", async () => {
  const text = "hosts:\n  a.example: { metadata: { rates: 1/3SECOND, max_delay_ms: 150 } }\n";
  const path = await file("slow-ratelimits.yaml", text);
  const named = await run(["policy", "check", path]);
  const effective = await run(["policy", "check"], { DOCSTOKG_RLIMITS_YAML: path });
  assert.equal(named.stderr, effective.stderr);
  assert.match(named.stderr, /^warning: a\.example metadata: max_delay_ms 150/);
  assert.equal(named.stdout, `${path}: ratelimits, ok\n${effective.stdout}`);
  const { exitCode, stdout, stderr } = await run(["policy", "check", path, "--rate", "nonsense"]);
  assert.equal(exitCode, 2);
  assert.equal(stdout, `${path}: ratelimits, ok\n1 problem, 0 warnings, 0 notices\n`);
  assert.match(stderr, /^--rate: "nonsense" has no "="/);
});

test("policy check shows the first 20 findings of each rule and counts the rest; --json lists all", async () => {
  const hosts = Array.from({ length: 30 }, (_, at) => `  h${at}.example: { metadata: { rates: 1/3SECOND } }\n`);
  const path = await file("many-ratelimits.yaml", `hosts:\n${hosts.join("")}`);
  const { stdout, stderr } = await run(["policy", "check", path]);
  assert.equal(stderr.match(/^warning: .* \[bound-below-spacing\]$/gm)?.length, 21);
  assert.match(stderr, /^warning: and 10 more; --json lists all \[bound-below-spacing\]$/m);
  assert.match(stdout, /^0 problems, 30 warnings, /m);
  assert.equal(JSON.parse((await run(["policy", "check", path, "--json"])).stdout).warnings.length, 30);
});

test("policy check --strict fails on warnings, and --json names the rule of each", async () => {
  const shadow = ["--rate", "a.example:metadata=mode:shadow"];
  assert.equal((await run(["policy", "check", ...shadow])).exitCode, 0);
  const { exitCode, stdout } = await run(["policy", "check", "--strict", "--json", ...shadow]);
  assert.equal(exitCode, 2);
  const { problems, warnings } = JSON.parse(stdout);
  assert.deepEqual(problems, []);
  assert.deepEqual(
    warnings.map(({ rule, severity }: { rule: string; severity: string }) => [rule, severity]),
    [["shadow-mode", "warning"]],
  );
});

test("policy check warns of a raised rate that a lower total makes ineffective", async () => {
  const { stderr } = await run(["policy", "check", "--rate", "api.crossref.org:metadata=rates:20/SECOND"]);
  assert.match(stderr, /^warning: api\.crossref\.org metadata: 20\/SECOND \(--rate\) has no effect: the total of/m);
});

test("policy check without a file checks the variables that would be sent", async () => {
  const { exitCode, stderr } = await run(["policy", "check"], { OSF_TOKEN: "pasted\n" });
  assert.equal(exitCode, 2);
  assert.match(stderr, /^OSF_TOKEN: hosts\.api\.osf\.io\.headers\.authorization: /);
  assert.doesNotMatch(stderr, /pasted/);
});

test("a wrong role, host or flag is a clear message and exit code 2", async () => {
  for (const [argv, expected] of [
    [["policy", "explain", "a.example", "metdata"], /unknown role "metdata"; expected metadata, landing or artifact/],
    [["policy", "explain", "resolver:lov", "metadata"], /\[role\]: has no effect with resolver:<name>/],
    [["policy", "explain", "not a host"], /"not a host" is neither a host nor a URL/],
    [["policy", "explain", "ftp://a.example"], /unsupported URL scheme "ftp:"; expected http: or https:/],
    [["policy", "explain", "https://u:secret@bad host/"], /^(?!.*secret).*neither a host nor a URL/],
    [["policy", "show", "--rate-backend", "redis://u:secret@a.example"], /^(?!.*secret).*backend\.kind/],
    [
      ["policy", "show", "--breaker-role", "a.example=fail_max:3"],
      /--breaker-role: "a\.example" names no role; expected <host>:<role>/,
    ],
    [["policy", "show", "--rate", "a.example=rates:1/s"], /--rate: "a\.example" names no role; expected <host>:<role>/],
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

test("shadow mode is visible in policy show, policy explain and why", async () => {
  const env = {
    DOCSTOKG_RLIMITS_YAML: await file("shadow-ratelimits.yaml", "mode: shadow\n"),
    DOCSTOKG_BREAKERS_YAML: await file("shadow-breakers.yaml", "hosts: { a.example: { mode: shadow } }\n"),
  };
  const { stdout: shown } = await run(["policy", "show", "--host", "a.example"], env);
  assert.match(shown, /^a\.example +metadata +10\/SECOND .* shadow$/m);
  assert.match(shown, /^a\.example +metadata +5 \/ 45 s .* shadow$/m);
  const { stdout: json } = await run(["policy", "show", "--host", "a.example", "--json"], env);
  const { rows } = JSON.parse(json);
  assert.deepEqual([rows[0].mode, rows[0].breakerMode], ["shadow", "shadow"]);
  for (const command of [
    ["policy", "explain", "a.example"],
    ["why", "https://a.example/x"],
  ]) {
    const { stdout } = await run(command, env);
    assert.match(stdout, /(?:^mode|=) +shadow +\S*shadow-ratelimits\.yaml:1 +mode$/m);
    assert.match(stdout, /(?:^breaker\.mode|=) +shadow +\S*shadow-breakers\.yaml:1 +hosts\.a\.example\.mode$/m);
  }
});

test("a file that is not YAML has a handful of problems, not hundreds", async () => {
  const path = await file("readme.yaml", "# A title\n\n**text**: [a](b), `c`: d\n".repeat(40));
  const { exitCode, stdout, stderr } = await run(["policy", "check", path]);
  assert.equal(exitCode, 2);
  const lines = (stdout + stderr).split("\n").filter(line => line.startsWith(`${path}:`));
  assert.ok(lines.length <= 8, lines.join("\n"));
  assert.match(stdout + stderr, /and \d+ more syntax problems; is this file YAML\?/);
});

test("the examples in the help of the policy flags are valid, and each has an effect", async () => {
  const { stdout } = await run(["policy", "check", "--help"], {}, 500);
  const examples = [...stdout.matchAll(/^ {2}(--[\w-]+) .* e\.g\. (\S+)$/gm)];
  assert.equal(examples.length, 6);
  for (const [, flag = "", example = ""] of examples) {
    const { exitCode, stderr } = await run(["policy", "check", "--strict", flag, example]);
    assert.deepEqual([exitCode, stderr], [0, ""], `${flag} ${example}`);
  }
});

test("policy check refuses a store that a hub would refuse, and names the source", async () => {
  for (const [flags, expected] of [
    [["--rate-backend", "redis"], /^--rate-backend: backend\.dsn: backend redis needs a dsn: redis:\/\/host/],
    [
      ["--rate-backend", "sqlite", "--rate-dsn", "redis://u:secret@127.0.0.1"],
      /^--rate-dsn: backend\.dsn: "redis:\/\/…@127\.0\.0\.1" is not a dsn of backend sqlite/,
    ],
    [["--rate-backend", "redis", "--rate-dsn", "redis://a?cluster=yes"], /backend\.dsn: .*expected cluster=true/],
  ] as const) {
    const { exitCode, stdout, stderr } = await run(["policy", "check", ...flags]);
    assert.equal(exitCode, 2);
    assert.match(stderr, expected);
    assert.match(stdout, /^1 problem, /m);
  }
});

test("policy check counts every problem of a file, also those that it does not list", async () => {
  const hosts = Array.from({ length: 21 }, (_, at) => `  h${at}.example: { metadata: { rate: 1/s } }\n`);
  const path = await file("long-ratelimits.yaml", `hosts:\n${hosts.join("")}`);
  const { stdout, stderr } = await run(["policy", "check", path]);
  assert.equal(stdout, `${path}: ratelimits, 21 problems\n21 problems, 0 warnings, 0 notices\n`);
  assert.equal(stderr.trimEnd().split("\n").at(-1), `${path}: and 1 more problem (21 in all)`);
});

test("policy explain calls a host listed that only the breakers list, and refuses a resolver without a name", async () => {
  const { stdout } = await run(["policy", "explain", "mine.example", "--breaker", "mine.example=fail_max:2"]);
  assert.match(stdout, /^mine\.example \(metadata\), listed in the policy\n/);
  const { exitCode, stderr } = await run(["policy", "explain", "resolver:"]);
  assert.equal(exitCode, 2);
  assert.match(stderr, /the name of the resolver is missing/);
});
