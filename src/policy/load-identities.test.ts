import assert from "node:assert/strict";
import { mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, describe, test } from "node:test";
import { inspect } from "node:util";
import { parse } from "yaml";
import { ConfigError, type ConfigProblem } from "../errors.ts";
import type { Identities } from "./identity.ts";
import { type IdentitySources, loadIdentities } from "./load-identities.ts";

const mailto = "you@example.org";
const host = "api.example.org";
let folder = "";
before(async () => {
  folder = await mkdtemp(join(tmpdir(), "docstokg-identities-"));
});
after(() => rm(folder, { recursive: true }));

async function file(name: string, text: string): Promise<string> {
  const path = join(folder, name);
  await writeFile(path, text);
  return path;
}

async function problems(sources: IdentitySources): Promise<readonly ConfigProblem[]> {
  const error = await loadIdentities(sources).then(
    () => undefined,
    reason => reason,
  );
  assert.ok(error instanceof ConfigError, String(error));
  return error.problems.map(problem => ({ ...problem, where: problem.where.replace(`${folder}/`, "") }));
}

/** The fields that are sent to a host, as an object. */
function fieldsOf(identities: Identities, name: string, port = 443) {
  const identity = identities.of(name, port);
  if (identity === undefined) return undefined;
  const plain = (fields: typeof identity.query) =>
    Object.fromEntries(fields.map(field => [field.name, field.reveal()]));
  return { query: plain(identity.query), headers: plain(identity.headers) };
}

/** Every variable that the shipped file uses, with a value that contains its name. */
async function everyKey(): Promise<Readonly<Record<string, string>>> {
  const text = await readFile(new URL("../../configs/networking/identities.yaml", import.meta.url), "utf8");
  const { hosts } = parse(text) as { hosts: unknown };
  const names = JSON.stringify(hosts).matchAll(/\{([A-Z_]+)\}/g);
  return Object.fromEntries([...names].map(([, name = ""]) => [name, `value-of-${name}`]));
}

describe("shipped identities", () => {
  test("send each host the fields it asks for when every key is set", async () => {
    const env = await everyKey();
    const identities = await loadIdentities({ env, mailto });
    assert.deepEqual(Object.fromEntries(identities.hosts.map(name => [name, fieldsOf(identities, name)])), {
      "api.crossref.org": {
        query: { mailto },
        headers: { "crossref-plus-api-token": "Bearer value-of-CROSSREF_PLUS_API_TOKEN" },
      },
      "api.openalex.org": { query: { api_key: "value-of-OPENALEX_API_KEY" }, headers: {} },
      "content.openalex.org": { query: { api_key: "value-of-OPENALEX_API_KEY" }, headers: {} },
      "api.unpaywall.org": { query: { email: mailto }, headers: {} },
      "api.semanticscholar.org": { query: {}, headers: { "x-api-key": "value-of-SEMANTIC_SCHOLAR_API_KEY" } },
      "eutils.ncbi.nlm.nih.gov": {
        query: { tool: "docstokg", email: mailto, api_key: "value-of-NCBI_API_KEY" },
        headers: {},
      },
      "pmc.ncbi.nlm.nih.gov": { query: { tool: "docstokg", email: mailto }, headers: {} },
      "doaj.org": { query: {}, headers: { "user-agent": "docstokg" } },
      "api.openaire.eu": { query: {}, headers: { authorization: "Bearer value-of-OPENAIRE_TOKEN" } },
      "api.core.ac.uk": { query: {}, headers: { authorization: "Bearer value-of-CORE_API_KEY" } },
      "api.osf.io": { query: {}, headers: { authorization: "Bearer value-of-OSF_TOKEN" } },
      "zenodo.org": { query: {}, headers: { authorization: "Bearer value-of-ZENODO_TOKEN" } },
      "data.bioontology.org": {
        query: {},
        headers: { authorization: "apikey token=value-of-BIOPORTAL_API_KEY" },
      },
    });
  });

  test("send only the name of the program without keys and an email address", async () => {
    const identities = await loadIdentities();
    for (const name of identities.hosts) {
      const { query, headers } = fieldsOf(identities, name) ?? {};
      assert.deepEqual(
        Object.values({ ...query, ...headers }).filter(value => value !== "docstokg"),
        [],
        name,
      );
    }
    assert.equal(identities.mailto, undefined);
  });

  test("have a source and a date for every entry, and a placeholder in every template", async () => {
    const text = await readFile(new URL("../../configs/networking/identities.yaml", import.meta.url), "utf8");
    const lines = text.split("\n").filter(line => /^ +(?:query|headers):/.test(line));
    assert.ok(lines.length > 10);
    for (const line of lines) {
      assert.match(line, /\} # .*\b20\d\d\b/, line);
      for (const [, template = ""] of line.replace(/#.*/, "").matchAll(/"([^"]*)"/g)) assert.match(template, /\{\w+\}/);
    }
  });
});

describe("layers", () => {
  test("an object of the user changes the fields it names, in any spelling, and keeps the others", async () => {
    const hosts = {
      "API.Crossref.org.": { headers: { "Crossref-Plus-API-Token": "Bearer {MY_TOKEN}" } },
      [host]: { headers: { "X-Key": "{MY_TOKEN}" }, query: { via: "constant" } },
    };
    const identities = await loadIdentities({ identities: { hosts }, env: { MY_TOKEN: "mine" }, mailto });
    assert.deepEqual(fieldsOf(identities, "api.crossref.org"), {
      query: { mailto },
      headers: { "crossref-plus-api-token": "Bearer mine" },
    });
    assert.deepEqual(fieldsOf(identities, host), { query: { via: "constant" }, headers: { "x-key": "mine" } });
    assert.deepEqual(fieldsOf(identities, "api.unpaywall.org"), { query: { email: mailto }, headers: {} });
  });

  test("null or false removes a field or a host; extends: none ignores the shipped file", async () => {
    const hosts = {
      "api.crossref.org": { query: { mailto: null } },
      "api.unpaywall.org": false as const,
      "doaj.org": null,
      "eutils.ncbi.nlm.nih.gov": { query: { tool: false as const } },
    };
    const identities = await loadIdentities({ identities: { hosts }, mailto });
    assert.deepEqual(fieldsOf(identities, "api.crossref.org"), { query: {}, headers: {} });
    assert.equal(fieldsOf(identities, "api.unpaywall.org"), undefined);
    assert.equal(fieldsOf(identities, "doaj.org"), undefined);
    assert.deepEqual(fieldsOf(identities, "eutils.ncbi.nlm.nih.gov"), { query: { email: mailto }, headers: {} });
    const alone = await file("alone.yaml", `extends: none\nhosts:\n  ${host}: { query: { a: "{tool}" } }\n`);
    assert.deepEqual((await loadIdentities({ identities: alone })).hosts, [host]);
  });

  test("a file can be named in the environment, and its problems name the variable", async () => {
    const path = await file("mine.yaml", `hosts:\n  ${host}: { query: { who: "{tool}" } }\n`);
    const identities = await loadIdentities({ env: { DOCSTOKG_IDENTITIES_YAML: path }, tool: "harvest" });
    assert.deepEqual(fieldsOf(identities, host), { query: { who: "harvest" }, headers: {} });
    assert.deepEqual(await problems({ env: { DOCSTOKG_IDENTITIES_YAML: "no-such.yaml" } }), [
      { where: "DOCSTOKG_IDENTITIES_YAML=no-such.yaml", path: "", message: "file not found" },
    ]);
  });

  test("the email address comes from the call, or else from the environment", async () => {
    const env = { DOCSTOKG_MAILTO: "env@example.org" };
    assert.equal((await loadIdentities({ env })).mailto, "env@example.org");
    assert.equal((await loadIdentities({ env, mailto })).mailto, mailto);
    assert.equal((await loadIdentities({ env, mailto: "" })).mailto, undefined);
  });

  test("a port counts only where the policy names it", async () => {
    const hosts = { [`${host}:8443`]: { query: { a: "{tool}" } }, "b.example": { query: { b: "{tool}" } } };
    const identities = await loadIdentities({ identities: { hosts } });
    assert.equal(identities.of(host, 443), undefined);
    assert.equal(identities.of(host, 8443)?.namesPort, true);
    assert.equal(identities.of("b.example", 8443)?.namesPort, false);
  });
});

describe("mistakes", () => {
  test("all mistakes of a file are listed, with their lines and suggestions", async () => {
    const path = await file(
      "bad.yaml",
      [
        "hosts:",
        `  ${host}:`,
        "    header: { x: y }",
        "    query:",
        '      a: "{mailbox}"',
        '      b: "half {tool"',
        "      c: 12345678",
        '      d: "a\\r\\nb"',
        "    headers:",
        '      content-length: "1"',
        "    path: api",
        "  not a host: {}",
        "  b.example:",
        "    path: /v2?page=1",
        '    query: { a: "{sk-live-secret}", b: "{0123secret}" }',
        "    headers:",
        '      X-Key: "{tool}"',
        '      x-key: "{A_KEY}"',
      ].join("\n"),
    );
    assert.deepEqual(
      (await problems({ identities: path })).map(({ where, message }) => `${where} ${message}`).sort(),
      [
        'bad.yaml:12 "not a host" is not a host; expected a name such as "example.org", an address such as "192.0.2.1" or "[2001:db8::1]", with an optional port from 1 to 65535 ("example.org:8080")',
        "bad.yaml:11 expected a path such as /api, without a query",
        "bad.yaml:14 expected a path such as /api, without a query",
        "bad.yaml:15 unknown placeholder; expected {mailto}, {tool} or an environment variable in capitals, such as {API_KEY}",
        "bad.yaml:15 unknown placeholder; expected {mailto}, {tool} or an environment variable in capitals, such as {API_KEY}",
        "bad.yaml:18 the same header as X-Key",
        "bad.yaml:3 unknown key; did you mean headers?",
        "bad.yaml:5 unknown placeholder {mailbox}; expected {mailto}, {tool} or an environment variable in capitals, such as {API_KEY}",
        "bad.yaml:6 unmatched brace",
        "bad.yaml:7 expected string",
        "bad.yaml:8 expected printable ASCII without leading or trailing spaces",
        "bad.yaml:10 this header cannot be set here: it controls the connection, not the identity",
      ].sort(),
    );
  });

  test("a value that could break out of its header is refused, with its variable named and its value not shown", async () => {
    for (const value of ["abc\r\nx-evil: 1", "abc\n", " abc", "abc\u0000", "schlüssel", "\u007f"]) {
      const found = await problems({ env: { NCBI_API_KEY: value } });
      assert.deepEqual(
        found.map(({ where, path }) => [where, path]),
        [["NCBI_API_KEY", "hosts.eutils.ncbi.nlm.nih.gov.query.api_key"]],
      );
      assert.ok(!JSON.stringify(found).includes(JSON.stringify(value).slice(1, -1)));
    }
  });

  test("a wrong variable that several hosts use is reported once", async () => {
    assert.equal((await problems({ env: { OPENALEX_API_KEY: "a\nb" } })).length, 1);
  });

  test("a variable that no template uses is not checked", async () => {
    await loadIdentities({ env: { SOMETHING_ELSE: "a\nb" }, identities: { hosts: { "api.osf.io": null } } });
    await loadIdentities({ env: { OSF_TOKEN: "a\nb" }, identities: { hosts: { "api.osf.io": null } } });
  });

  test("an invalid email address is refused, and not shown", async () => {
    for (const bad of [
      "somebody",
      "somebody@",
      "@nowhere.example",
      "a b@nowhere.example",
      "a@b@c.org",
      "a@b.org\r\nx: y",
      "ü@b.org",
    ]) {
      for (const sources of [{ mailto: bad }, { env: { DOCSTOKG_MAILTO: bad } }]) {
        const [problem] = await problems(sources);
        assert.equal(problem?.where, "mailto" in sources ? "mailto" : "DOCSTOKG_MAILTO");
        assert.ok(!problem?.message.includes(bad));
      }
    }
    const [problem] = await problems({ tool: "two words" });
    assert.equal(problem?.where, "tool");
  });

  test("a brace inside a value is not a placeholder", async () => {
    const identities = await loadIdentities({ env: { NCBI_API_KEY: "{mailto}$&" }, mailto });
    assert.equal(fieldsOf(identities, "eutils.ncbi.nlm.nih.gov")?.query["api_key"], "{mailto}$&");
  });
});

test("inspecting, serialising or printing identities shows no value", async () => {
  const env = await everyKey();
  const identities = await loadIdentities({ env, mailto });
  const identity = identities.of("eutils.ncbi.nlm.nih.gov", 443);
  for (const held of [identities, identity, identity?.query]) {
    const shown = [inspect(held, { depth: 9, showHidden: true }), JSON.stringify(held), String(held)].join("\n");
    assert.doesNotMatch(shown, /value-of|you@/);
  }
});
