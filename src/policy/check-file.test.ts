import assert from "node:assert/strict";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { checkFiles, checkPolicy } from "./check-file.ts";
import type { PolicySources } from "./load.ts";

let folder = "";
before(async () => {
  folder = await mkdtemp(join(tmpdir(), "docstokg-policy-"));
});
after(() => rm(folder, { recursive: true }));

async function file(name: string, text: string): Promise<string> {
  const path = join(folder, name);
  await writeFile(path, text);
  return path;
}

async function checkFile(path: string, sources?: PolicySources) {
  const { files, ...checked } = await checkFiles([path], sources);
  return { kind: files[0]?.kind, ...checked };
}

test("a file is checked as the kind that its name or its keys show", async () => {
  const { findings, ...checked } = await checkFile(
    await file("my-breakers.yaml", "defaults: { retry_after_cap_s: 1800 }\n"),
  );
  assert.deepEqual(checked, { kind: "breakers", problems: [] });
  assert.deepEqual(
    findings.filter(({ severity }) => severity === "warning"),
    [],
  );
  assert.equal((await checkFile(await file("mine.yaml", "resolvers: { lov: { fail_max: 3 } }\n"))).kind, "breakers");
  const named = "services: { resolvers: { members: [a.example], metadata: { rates: 1/SECOND } } }\n";
  assert.equal((await checkFile(await file("mine3.yaml", named))).kind, "ratelimits");
  assert.equal(
    (await checkFile(await file("mine2.yaml", "defaults: { metadata: { rate: 1/s } }\n"))).problems.length,
    1,
  );
  const doubled = "groups:\n  a: { members: [x.example] }\n  b:\n    members: [x.example]\n";
  const [problem] = (await checkFile(await file("doubled-ratelimits.yaml", doubled))).problems;
  assert.match(
    `${problem?.where} ${problem?.message}`,
    /doubled-ratelimits\.yaml:4 x\.example is already a member of service a/,
  );
});

test("one key that only breakers.yaml has is enough to recognise the file", async () => {
  const mixed = "version: 1\ndefaults: { retry_after_cap_s: 5 }\nresolvers: { lov: { fail_max: 3 } }\n";
  assert.deepEqual((await checkFile(await file("mixed.yaml", mixed))).problems, []);
});

test("a value on a line of its own has that line, and a list is quoted", async () => {
  const text =
    "hosts:\n  a.example:\n    metadata:\n      rates:\n        8/fortnight\n      max_delay_ms:\n        - {}\n        -\n";
  const found = (await checkFile(await file("ratelimits.yaml", text))).problems;
  assert.deepEqual(
    found.map(({ where }) => where.split(":").at(-1)),
    ["5", "7"],
  );
  assert.ok(found[1]?.message.endsWith("found [{},null]"), found[1]?.message);
});

test("a file gives the same warnings and problems as the same file in the environment", async () => {
  const text = "hosts:\n  a.example:\n    metadata: { rates: 1/3SECOND, max_delay_ms: 150 }\n";
  const path = await file("warned-ratelimits.yaml", text);
  const env = { DOCSTOKG_RLIMTS: "x", DOCSTOKG_AIMD: "enabled:true" };
  const { kind, ...checked } = await checkFile(path, { env });
  assert.equal(kind, "ratelimits");
  assert.deepEqual(checked, await checkPolicy({ env: { ...env, DOCSTOKG_RLIMITS_YAML: path } }));
  assert.equal(checked.findings.filter(({ severity }) => severity === "warning").length, 2);
  const overrides = { rate: ["nonsense"] };
  assert.equal((await checkFile(path, { overrides })).problems.length, 1);
});

test("an identities file is recognised by its name or its keys", async () => {
  const named = await file("my-identities.yaml", "hosts: {}\n");
  const { findings, ...checked } = await checkFile(named);
  assert.deepEqual(checked, { kind: "identities", problems: [] });
  assert.deepEqual(
    findings.filter(({ severity }) => severity === "warning"),
    [],
  );
  const keyed = await file("keyed.yaml", 'hosts:\n  a.example: { headers: { x: "{y}" } }\n');
  const { kind, problems } = await checkFile(keyed);
  assert.equal(kind, "identities");
  assert.equal(problems.length, 1);
});

test("the kind of a file follows from the keys of the schemas, also if a key is misspelled", async () => {
  for (const [kind, text] of [
    ["breakers", "hosts: { a.example: { retry_after_cap_s: 5 } }"],
    ["breakers", "hosts: { a.example: { throttles: [{ header: x-quota }] } }"],
    ["breakers", "services: { arxiv: { roles: { metadata: { fail_max: many } } } }"],
    ["breakers", "resolvers: { lov: { fail_mx: 3 } }"],
    ["identities", 'services: { arxiv: { headers: { x-key: "{MY_KEY}" } } }'],
    ["identities", "hosts: { api.crossref.org: null }"],
    ["ratelimits", "hosts: { breakers.example: { metadata: { rate: 1/s } } }"],
    ["ratelimits", "version: 1"],
  ])
    assert.equal((await checkFile(await file("any.yaml", `${text}\n`))).kind, kind, text);
});

test("files of different kinds are checked together, and each file of one kind", async () => {
  const limits = await file("new-ratelimits.yaml", "services: { mine: { members: [a.example] } }\n");
  const breakers = await file("new-breakers.yaml", "services: { mine: { fail_max: 2 } }\n");
  const identities = await file("new-identities.yaml", "services: { mine: { headers: { x-key: '{MY_KEY}' } } }\n");
  const wrong = await file("wrong-ratelimits.yaml", "services: { mine: { members: [a.example], rate: 1/s } }\n");
  const { problems, findings, files } = await checkFiles([identities, breakers, limits]);
  assert.deepEqual(
    [problems, findings.filter(({ severity }) => severity === "warning"), files.map(({ kind }) => kind)],
    [[], [], ["identities", "breakers", "ratelimits"]],
  );
  const both = await checkFiles([wrong, limits, identities]);
  assert.deepEqual(
    both.problems.map(({ message }) => message),
    ["unknown key; did you mean rates?"],
  );
});
