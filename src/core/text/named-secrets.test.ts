import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { redactedText } from "./redaction.ts";

/** Notations that name a credential. */
const NOTATIONS: Readonly<Record<string, (name: string, value: string) => string>> = {
  "a query": (name, value) => `https://api.example.org/x?q=1&${name}=${value}&y=2`,
  "an encoded query": (name, value) => `next=https%3A%2F%2Fa.example.org%2F%3F${name}%3D${value}%26y%3D2`,
  "a query that was encoded twice": (name, value) => `next=%253F${name}%253D${value}`,
  "a header": (name, value) => `${name}: ${value}`,
  "a value on the next line": (name, value) => `${name}:\n    ${value}\nhost: a.example.org`,
  "a flag": (name, value) => `docstokg run --${name} ${value} list.csv`,
  "a flag of one dash": (name, value) => `tool -${name} ${value}`,
  "a flag with a value in quotes": (name, value) => `docstokg run --${name} '${value}' list.csv`,
  "a flag with an equals sign": (name, value) => `docstokg run --${name}=${value} list.csv`,
  "a list of arguments": (name, value) => JSON.stringify(["run", `--${name}`, value]),
  "a list of arguments with an equals sign": (name, value) => JSON.stringify(["run", `--${name}=${value}`]),
  "a list of arguments as Node prints it": (name, value) => `[ 'run', '--${name}', '${value}', 'list.csv' ]`,
  "a flat list of headers": (name, value) => JSON.stringify(["accept", "*/*", name, value]),
  "a flat list of headers as Node prints it": (name, value) =>
    `[\n  'accept',\n  '*/*',\n  '${name}',\n  '${value}'\n]`,
  "a list that was joined": (name, value) => `accept,*/*,host,${name},${value}`,
  "an element of XML": (name, value) => `<config><${name}>${value}</${name}></config>`,
  "an element with attributes": (name, value) => `<${name} type="text">${value}</${name}>`,
  "an element with CDATA": (name, value) => `<${name}><![CDATA[${value}]]></${name}>`,
  "escaped XML": (name, value) => `&lt;${name}&gt;${value}&lt;/${name}&gt;`,
  "an attribute": (name, value) => `<server ${name}="${value}"/>`,
  JSON: (name, value) => JSON.stringify({ a: 1, [name]: value, b: 2 }),
  "JSON in JSON": (name, value) => JSON.stringify({ body: JSON.stringify({ [name]: value }) }),
  "JSON in JSON in JSON": (name, value) => JSON.stringify(JSON.stringify(JSON.stringify({ [name]: value }))),
  "JSON in a URL": (name, value) => `filter=${encodeURIComponent(JSON.stringify({ [name]: value }))}`,
  "JSON in HTML": (name, value) => `{&quot;${name}&quot;:&quot;${value}&quot;}`,
  "JSON with a quote in the value": (name, value) => JSON.stringify({ [name]: `x"${value}` }),
  "a block of YAML": (name, value) => `server:\n  ${name}: |\n    ${value}\n`,
  "an arrow": (name, value) => `${name} -> ${value}`,
  "an encoded form with spaces": (name, value) => `a%3D1%20${name}%20%3D%20${value}`,
  YAML: (name, value) => `server:\n  ${name}: '${value}'\n`,
  "a map": (name, value) => `Map(1) { '${name}' => '${value}' }`,
  "a Bearer scheme": (_, value) => `the header was Bearer ${value}`,
  "a Basic scheme": (_, value) => `tried basic ${value}==, refused`,
  "a scheme in a list": (_, value) => `["Bearer", "${value}"]`,
};
const name = fc.constantFrom(
  ..."api_key api-key apikey apiKey x-api-key X-ELS-Insttoken client_secret refresh-token token password".split(" "),
);
/** Random keys have letters and digits. */
const secret = fc
  .tuple(fc.stringMatching(/^[A-Za-z0-9]{3,30}$/), fc.nat({ max: 9 }), fc.constantFrom("a", "q", "Z"))
  .map(([random, digit, letter]) => `${random}${digit}${letter}`);
const word = fc.constantFrom("", "GET", "failed", "cannot read", "(", "the body was");

for (const [notation, write] of Object.entries(NOTATIONS))
  test(`a secret is removed from ${notation}`, () => {
    fc.assert(
      fc.property(name, secret, word, word, (named, value, before, after) => {
        const redacted = redactedText(`${before} ${write(named, value)} ${after}`);
        assert.ok(!redacted.includes(value), redacted);
        assert.ok(redacted.startsWith(before) && redacted.includes("…"), redacted);
      }),
    );
  });

/** Words of sentences and tables, also those that name credentials. */
const plain = fc.oneof(
  fc.constantFrom(
    ..."the token was refused by api.example.org because basic information of authors is missing".split(" "),
    ..."password secret keys Bearer bearer Basic basic tokens authentication certificates instruments".split(" "),
    ..."--token --api-key docstokg retry-after 429 503 0.25 v2.1.0 2026-11-16 2026-11-16T20:18:57Z (see below)".split(
      " ",
    ),
    ..."ECONNREFUSED undici@8.1.0 sqlite W2741809807 PMC1234567 arXiv GO_0008150 monkey author Smith".split(" "),
  ),
  fc.stringMatching(/^10\.[0-9]{4,5}\/[a-z]{1,8}\.[0-9]{4}\.[0-9]{1,6}$/),
  fc.stringMatching(/^https:\/\/doi\.org\/10\.[0-9]{4,5}\/[a-z]{1,12}-[0-9]{4}$/),
  fc.stringMatching(/^[0-9]{4}-[0-9]{4}-[0-9]{4}-[0-9]{3}[0-9X]$/),
  fc.stringMatching(/^https:\/\/orcid\.org\/[0-9]{4}-[0-9]{4}-[0-9]{4}-[0-9]{3}[0-9X]$/),
);
const afterFlag = fc.constantFrom("needs a value", "is given twice", "has no effect without --input", "and others");

test("sentences, DOIs, ORCIDs, numbers and names of flags are not changed", () => {
  fc.assert(
    fc.property(fc.array(plain, { maxLength: 12 }), afterFlag, (words, rest) => {
      // A flag is followed by a sentence: a number after it would be its value.
      const text = words
        .map(one => (/^--/.test(one) || /^(?:bearer|basic)$/i.test(one) ? `${one} token` : one))
        .map(one => (one.startsWith("--") ? `${one.split(" ")[0]} ${rest}` : one))
        .join(" ");
      assert.equal(redactedText(text), text);
    }),
    { numRuns: 1000 },
  );
});

test("lists of names are not changed", () => {
  for (const text of [
    'mode must be one of "token", "password", "none"',
    'unknown key "api_key", did you mean "api_keys"?',
    "columns doi,token,title,author",
    "<key>metadata</key> and <code>x1</code>",
    "--mailto, --user-agent and --token <value>",
    "Basic Formal Ontology, basic-ontology.owl, basic metadata",
  ])
    assert.equal(redactedText(text), text);
});

test("a megabyte of hostile text is redacted in time that grows with its length", { timeout: 300_000 }, () => {
  const pieces = [
    ..."a - -- = : , @ // //a: //a:1 eyJ key= --key token, < <a <key> &lt;key &quot; %3D %253D api".split(" "),
    ...[
      " ",
      "\n",
      "\\",
      '\\"',
      '"',
      "'",
      '"key","',
      '"key":"\\',
      "bearer ",
      "basic  ",
      "api key",
      "a.",
      "a@b.",
      "%22",
      "%20",
      "a%20",
      "token %20",
    ],
    ...["token ", "token\\t", "token%20", "a\t", "token is ", "-u ", "-ua:", "-ua://", '-u"a', "+-u", "-u1:1 "],
    ...["--token  ", "x-api-key,", "-----BEGIN ", "<key ", "<token>", "[0]", "a+", "A1b2/"],
  ];
  const hostile = (piece: string, length: number) => piece.repeat(length / piece.length);
  for (const piece of ["a", "\\", "<a ", "--token  ", '"key","', "a@b.", "//a:"])
    assert.equal(typeof redactedText(hostile(piece, 2 ** 20)), "string");
  for (const piece of pieces) {
    for (const start of ["", "token=", '"token":"', "--token ", "<token>", "bearer ", "-u ", '-u "', ", "])
      assert.equal(typeof redactedText(start + hostile(piece, 2 ** 15)), "string");
  }
});
