import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { inspect } from "node:util";
import fc from "fast-check";
import type { HeaderFields } from "../../core/cache/stored-fields.ts";
import type { IdentitiesOptions } from "../../policy/identity-options.ts";
import { type LoadedPolicy, loadPolicy } from "../../policy/load.ts";
import { type IdentitySources, loadIdentities } from "../../policy/load-identities.ts";
import { CallerIdentity } from "./caller-identity.ts";
import type { ResponseHead } from "./stage.ts";

const mailto = "you@example.org";
const key = "k3y/with+odd&chars=";
const encodedKey = encodeURIComponent(key);
const ours = {
  "api.example.org": { query: { mailto: "{mailto}", api_key: "{A_KEY}" }, headers: { "x-token": "Bearer {A_TOKEN}" } },
  localhost: { headers: { "x-token": "{A_TOKEN}" } },
  "127.0.0.1": { headers: { "x-token": "{A_TOKEN}" } },
  "[::1]": { headers: { "x-token": "{A_TOKEN}" } },
  "port.example:8443": { headers: { "x-token": "{A_TOKEN}" } },
  "const.example": { query: { source: "constant" } },
  "part.example": { path: "/api", query: { mailto: "{mailto}" } },
};
const env = { A_KEY: key, A_TOKEN: "t0ken-of-ours" };

async function callerIdentity(sources: IdentitySources = {}, userAgent?: string): Promise<CallerIdentity> {
  const identities = await loadIdentities({ identities: { hosts: ours }, env, mailto, ...sources });
  return new CallerIdentity({ identities, version: "0.1.0", userAgent });
}

function request(origin: string, path = "/works", headers: readonly string[] = []) {
  return { origin, path, headers };
}

function fields(headers: readonly string[]): Readonly<Record<string, string>> {
  return Object.fromEntries(headers.flatMap((name, at) => (at % 2 === 0 ? [[name, headers[at + 1] ?? ""]] : [])));
}

function assertUnchanged(some: CallerIdentity, given: ReturnType<typeof request>): void {
  const sent = some.apply(given);
  assert.equal(sent.path, given.path, given.origin);
  assert.equal(sent.headers, given.headers, given.origin);
}

const agent = `docstokg/0.1.0 (mailto:${mailto})`;

describe("the User-Agent", () => {
  test("has the program, its version and the address, and only the first two without an address", async () => {
    const known = (await callerIdentity()).apply(request("https://elsewhere.example"));
    assert.deepEqual(known.headers, ["user-agent", agent]);
    const unknown = (await callerIdentity({ mailto: "" })).apply(request("https://elsewhere.example"));
    assert.deepEqual(unknown.headers, ["user-agent", "docstokg/0.1.0"]);
    assert.doesNotMatch(agent, /bot|spider/i);
  });

  test("replaces the default of a runtime, in its place, and keeps one that the caller set", async () => {
    const some = await callerIdentity();
    const given = (name: string) => request("https://elsewhere.example", "/", ["accept", "*/*", "user-agent", name]);
    for (const runtime of ["node", "undici"])
      assert.deepEqual(some.apply(given(runtime)).headers, ["accept", "*/*", "user-agent", agent]);
    assertUnchanged(some, given("mine/1.0"));
  });

  test("of the userAgent option is sent instead of the default; one that cannot be sent is refused", async () => {
    const { headers } = (await callerIdentity({}, "mine/2.0")).apply(request("https://elsewhere.example"));
    assert.deepEqual(headers, ["user-agent", "mine/2.0"]);
    await assert.rejects(callerIdentity({}, "mine\r\nx: y"), /^RangeError: userAgent must be printable ASCII/);
    await assert.rejects(callerIdentity({}, ""), RangeError);
  });

  test("for DOAJ has no address, because DOAJ refuses one that contains bot", async () => {
    const { headers } = (await callerIdentity({ mailto: "abbott@example.org" })).apply(
      request("https://doaj.org", "/api"),
    );
    assert.deepEqual(headers, ["user-agent", "docstokg"]);
  });
});

describe("fields of a host", () => {
  test("query fields are appended and encoded, and headers are added", async () => {
    const sent = (await callerIdentity()).apply(request("https://api.example.org", "/works?a=1", ["accept", "*/*"]));
    assert.equal(sent.path, `/works?a=1&mailto=you%40example.org&api_key=${encodedKey}`);
    assert.deepEqual(sent.headers, ["accept", "*/*", "x-token", "Bearer t0ken-of-ours", "user-agent", agent]);
  });

  test("a field that the caller has set is kept, empty or not", async () => {
    const some = await callerIdentity();
    const own = ["x-token", "node", "user-agent", "his"];
    const given = request("https://api.example.org", "/works?mailto=&api%5Fkey=his", own);
    assertUnchanged(some, given);
  });

  test("the query stays before a fragment, and separators are not doubled", async () => {
    const some = await callerIdentity({ env: {} });
    const path = (given: string) => some.apply(request("https://api.example.org", given)).path;
    assert.equal(path("/"), "/?mailto=you%40example.org");
    assert.equal(path("/a#f?x"), "/a?mailto=you%40example.org#f?x");
    assert.equal(path("/a?"), "/a?mailto=you%40example.org");
    assert.equal(path("/a?b&#f"), "/a?b&mailto=you%40example.org#f");
    assert.equal(path("/a?sig=%2f%2F+~%zz"), "/a?sig=%2f%2F+~%zz&mailto=you%40example.org");
    assert.equal(path("/a??mailto=x"), "/a??mailto=x&mailto=you%40example.org");
  });

  test("a field whose variable is missing or empty is not sent, and the others are", async () => {
    for (const without of [{}, { A_KEY: "", A_TOKEN: "" }]) {
      const sent = (await callerIdentity({ env: without })).apply(request("https://api.example.org"));
      assert.equal(sent.path, "/works?mailto=you%40example.org");
      assert.deepEqual(sent.headers, ["user-agent", agent]);
    }
    const nothing = (await callerIdentity({ env: {}, mailto: "" })).apply(request("https://api.example.org"));
    assert.equal(nothing.path, "/works");
  });

  test("an entry with a path applies at and below the path", async () => {
    const some = await callerIdentity();
    const isTold = (path: string) => some.apply(request("https://part.example", path)).path !== path;
    for (const path of ["/api", "/api?x", "/api/", "/api/v1?x=/"]) assert.ok(isTold(path), path);
    for (const path of ["/", "/apis", "/x/api", "/API", "/api/../oai", "/api/%2e%2E/oai", "/api/..%2Foai", "/?/api"])
      assert.ok(!isTold(path), path);
  });

  test("the spelling of the host does not matter", async () => {
    const some = await callerIdentity();
    for (const origin of ["https://API.example.org", "https://api.example.org.", "https://api.example.org:443"])
      assert.ok(some.apply(request(origin)).path.includes("api_key="), origin);
  });
});

describe("other hosts", () => {
  test("no other host, subdomain, parent, look-alike or proxy gets anything but the User-Agent", async () => {
    const some = await callerIdentity();
    for (const origin of [
      "https://example.org",
      "https://www.api.example.org",
      "https://xapi.example.org",
      "https://api.example.org.evil.example",
      "https://api.example.org@evil.example",
      "https://evil.example",
      "https://port.example",
      "ftp://api.example.org",
      "api.example.org",
      "",
    ]) {
      const { path, headers } = some.apply(request(origin));
      assert.equal(path, "/works", origin);
      assert.deepEqual(headers, ["user-agent", agent], origin);
    }
    const proxied = some.apply(request("https://api.example.org", "http://evil.example/"));
    assert.equal(proxied.path, "http://evil.example/");
    assert.deepEqual(proxied.headers, ["user-agent", agent]);
  });

  test("for each shipped host, neither its subdomains nor its parent get its fields", async () => {
    const anyKey = new Proxy({}, { get: (_, name) => (String(name).startsWith("DOCSTOKG_") ? undefined : "key") });
    const identities = await loadIdentities({ mailto, env: anyKey });
    const some = new CallerIdentity({ identities, version: "0.1.0" });
    for (const host of identities.hosts) {
      const path = identities.of(host, 443)?.path ?? "/";
      const sent = some.apply(request(`https://${host}`, path));
      assert.ok(sent.path !== path || sent.headers[1] !== agent, host);
      for (const other of [`https://x.${host}`, `https://${host.slice(host.indexOf(".") + 1)}`, `https://${host}.x`]) {
        assert.deepEqual(some.apply(request(other, path)).headers, ["user-agent", agent], other);
        assert.equal(some.apply(request(other, path)).path, path, other);
      }
    }
  });

  test("keys and constants are sent over https only, an address over http too", async () => {
    const some = await callerIdentity();
    const plain = some.apply(request("http://api.example.org"));
    assert.equal(plain.path, "/works?mailto=you%40example.org");
    assert.deepEqual(plain.headers, ["user-agent", agent]);
    assert.equal(some.apply(request("http://const.example")).path, "/works");
    assert.equal(some.apply(request("https://const.example")).path, "/works?source=constant");
  });

  test("keys are sent to the standard port, or to the one that the policy names", async () => {
    const some = await callerIdentity();
    const token = (origin: string) => fields(some.apply(request(origin)).headers)["x-token"];
    assert.equal(token("https://api.example.org:8443"), undefined);
    assert.equal(token("https://port.example:8443"), env.A_TOKEN);
    assert.equal(token("http://port.example:8443"), undefined);
  });

  test("to this machine keys are sent over http too, at any port", async () => {
    const some = await callerIdentity();
    for (const origin of ["http://localhost:3000", "http://127.0.0.1:3000", "http://[::1]:3000", "https://localhost"])
      assert.equal(fields(some.apply(request(origin)).headers)["x-token"], env.A_TOKEN, origin);
  });

  test("more origins than the limit of the memory change nothing", async () => {
    const some = await callerIdentity();
    for (let index = 0; index < 3000; index += 1) some.apply(request(`https://h${index}.example`));
    assert.ok(some.apply(request("https://api.example.org")).path.includes("api_key="));
    assert.equal(some.apply(request("https://h1.example")).path, "/works");
  });
});

describe("redirects", () => {
  const head = (location: string | string[], status = 302): ResponseHead => {
    const headers: HeaderFields = { location, "x-other": "kept" };
    return { status, statusText: "", headers, rawHeaders: [] };
  };

  test("added fields are removed from a Location, and nothing else is changed", async () => {
    const some = await callerIdentity();
    const before = request("https://api.example.org", "/works?a=1");
    const after = { ...before, ...some.apply(before) };
    for (const given of [before, after]) {
      const clean = (location: string) => some.scrub(head(location), given).headers["location"];
      const cdn = "https://cdn.example/f?sig=%2f%2F+";
      assert.equal(clean(`${cdn}&mailto=you%40example.org&api_key=${encodedKey}&z=1#f`), `${cdn}&z=1#f`);
      assert.equal(clean(`https://cdn.example/f?api_key=${encodedKey}`), "https://cdn.example/f");
      assert.equal(clean(`/elsewhere?api_key=${encodedKey}#f`), "/elsewhere#f");
      assert.equal(clean("https://cdn.example/f?mailto=you@example.org"), "https://cdn.example/f");
    }
  });

  test("a key is found under another name, inside a nested URL, and when it was sent as a header", async () => {
    const some = await callerIdentity({ env: { A_KEY: "0123456789abcdef/", A_TOKEN: "t0ken-of-ours" } });
    const given = request("https://api.example.org");
    const clean = (query: string) => some.scrub(head(`https://cdn.example/?x=1&${query}`), given).headers["location"];
    const nested = `https://api.example.org/?api_key=${encodeURIComponent("0123456789abcdef/")}`;
    for (const query of [
      "k=0123456789abcdef%2F",
      `return=${encodeURIComponent(nested)}`,
      "auth=Bearer+t0ken-of-ours",
      "0123456789abcdef/",
    ])
      assert.equal(clean(query), "https://cdn.example/?x=1", query);
  });

  test("the next hop to the same host gets the fields again, another host does not", async () => {
    const some = await callerIdentity();
    const given = request("https://api.example.org");
    const first = { ...given, ...some.apply(given) };
    const { location } = some.scrub(head(`https://api.example.org/v2?b=2&api_key=${encodedKey}`), first).headers;
    const { origin, pathname, search } = new URL(String(location));
    assert.equal(`${pathname}${search}`, "/v2?b=2");
    assert.ok(some.apply(request(origin, `${pathname}${search}`)).path.endsWith(`&api_key=${encodedKey}`));
    assert.equal(some.apply(request("https://cdn.example", `${pathname}${search}`)).path, "/v2?b=2");
  });

  test("the head is returned unchanged when it contains no added field", async () => {
    const some = await callerIdentity();
    const echo = `https://cdn.example/?api_key=${encodedKey}`;
    const ourHost = request("https://api.example.org");
    const without = { status: 302, statusText: "", headers: {}, rawHeaders: [] };
    assert.equal(some.scrub(without, ourHost), without);
    for (const [answer, given] of [
      [head("https://cdn.example/?mailto=other&k=short"), ourHost],
      [head("https://cdn.example/"), ourHost],
      [head(echo, 201), ourHost],
      [head(echo, 401), ourHost],
      [head(echo), request("https://elsewhere.example")],
    ] as const)
      assert.equal(some.scrub(answer, given), answer);
  });

  test("headers other than Location stay, and the raw headers match", async () => {
    const some = await callerIdentity();
    const answer = head([`https://a.example/?api_key=${encodedKey}`, "https://b.example/"]);
    const clean = some.scrub(answer, request("https://api.example.org"));
    assert.deepEqual(clean.headers, { location: ["https://a.example/", "https://b.example/"], "x-other": "kept" });
    assert.equal(clean.rawHeaders, clean.headers);
    assert.equal(clean.status, 302);
  });

  test("a short secret is removed only when it is the whole value", async () => {
    const some = await callerIdentity({ env: { A_KEY: "ab" } });
    const clean = (query: string) =>
      some.scrub(head(`/?${query}`), request("https://api.example.org")).headers["location"];
    assert.equal(clean("x=about&y=ab&ab"), "/?x=about");
  });
});

describe("for any path", () => {
  const path = fc
    .array(fc.constantFrom("a", "%2F", "+", "/", "?", "&", "=", "#", "mailto", "api_key", "%6d", "é", ";", "%"), {
      maxLength: 24,
    })
    .map(parts => `/${parts.join("")}`);

  test("the existing query stays before the added fields, and every parameter keeps its value", async () => {
    const some = await callerIdentity();
    fc.assert(
      fc.property(path, given => {
        const sent = some.apply(request("https://api.example.org", given)).path;
        const [before = "", ...fragment] = given.split("#");
        assert.ok(sent.startsWith(before));
        assert.equal(sent.split("#").slice(1).join("#"), fragment.join("#"));
        const parameters = (text: string) => [
          ...new URLSearchParams(`&${text.split("#")[0]?.split(/\?(.*)/s)[1] ?? ""}`),
        ];
        const was = parameters(given);
        assert.deepEqual(parameters(sent).slice(0, was.length), was);
        const added = parameters(sent).slice(was.length);
        const named = (name: string) => was.some(([known]) => known === name);
        const expected = [
          ...(named("mailto") ? [] : [["mailto", mailto]]),
          ...(named("api_key") ? [] : [["api_key", key]]),
        ];
        assert.deepEqual(added, expected);
      }),
      { numRuns: 2000 },
    );
  });

  test("applying twice is the same as once, and scrubbing an echo restores the original", async () => {
    const some = await callerIdentity();
    fc.assert(
      fc.property(path, given => {
        const before = request("https://api.example.org", given);
        const once = { ...before, ...some.apply(before) };
        assertUnchanged(some, once);
        assert.deepEqual(some.apply(once).sentKeys, once.sentKeys);
        const answer = { status: 302, statusText: "", headers: { location: once.path }, rawHeaders: [] };
        const { location } = some.scrub(answer, once).headers;
        assert.equal(String(location).replace(/[?&]*(?=#|$)/, ""), given.replace(/[?&]*(?=#|$)/, ""));
      }),
      { numRuns: 2000 },
    );
  });
});

describe("the keys that a request carries", () => {
  test("are those that only fields with their values are sent for", async () => {
    const some = await callerIdentity();
    const parameters = [
      `api_key=${encodedKey}`,
      "api_key=other",
      "api_key=",
      "mailto=you%40example.org",
      "mailto=x@y.z",
    ];
    const headers = ["Bearer t0ken-of-ours", "t0ken-of-ours", "other"].map(value => ["x-token", value]);
    fc.assert(
      fc.property(fc.subarray(parameters), fc.subarray(headers), (query, given) => {
        const sent = some.apply(request("https://api.example.org", `/works?${query.join("&")}`, given.flat()));
        const search = new URL(sent.path, "https://api.example.org").searchParams;
        const tokens = sent.headers.filter((_, at) => sent.headers[at - 1] === "x-token");
        const expected = { mailto, A_KEY: key, A_TOKEN: "Bearer t0ken-of-ours" };
        const found = { mailto: search.getAll("mailto"), A_KEY: search.getAll("api_key"), A_TOKEN: tokens };
        for (const name of ["mailto", "A_KEY", "A_TOKEN"] as const)
          assert.equal(sent.sentKeys.has(name), [...new Set(found[name])].join() === expected[name]);
      }),
      { numRuns: 500 },
    );
  });

  test("are none where no key is sent: over http, to another port, to a proxy and to another path", async () => {
    const some = await callerIdentity();
    const keysOf = (origin: string, path?: string) => [...some.apply(request(origin, path)).sentKeys].sort();
    assert.deepEqual(keysOf("https://api.example.org"), ["A_KEY", "A_TOKEN", "mailto"]);
    assert.deepEqual(keysOf("http://api.example.org"), ["mailto"]);
    assert.deepEqual(keysOf("https://api.example.org:8443"), ["mailto"]);
    assert.deepEqual(keysOf("https://api.example.org", "https://api.example.org/works"), []);
    assert.deepEqual(keysOf("https://port.example:8443"), ["A_TOKEN"]);
    assert.deepEqual(keysOf("https://port.example"), []);
    assert.deepEqual(keysOf("http://localhost:8080"), ["A_TOKEN"]);
    assert.deepEqual(keysOf("https://part.example", "/api/x"), ["mailto"]);
    assert.deepEqual(keysOf("https://part.example", "/x"), []);
    assert.deepEqual(keysOf("https://const.example"), []);
  });

  test("are one object for equal requests, so that their route is found without a search", async () => {
    const some = await callerIdentity();
    const sentKeys = (path: string) => some.apply(request("https://api.example.org", path)).sentKeys;
    assert.equal(sentKeys("/a"), sentKeys("/b?c=d"));
    assert.deepEqual([...sentKeys("/a")].sort(), ["A_KEY", "A_TOKEN", "mailto"]);
  });
});

test("printing or serialising an identity shows no value", async () => {
  const some = await callerIdentity();
  some.apply(request("https://api.example.org"));
  const shown = [inspect(some, { depth: 9, showHidden: true }), JSON.stringify(some), String(some)].join("\n");
  assert.doesNotMatch(shown, /k3y|t0ken|you@/);
});

describe("fields of a service", () => {
  const ratelimits = {
    extends: "none",
    services: {
      portal: {
        members: ["*.portal.example", "shared.example/api", "shared.example/Web/", "loose.example"],
        total: { rates: "3/SECOND" },
      },
      other: { members: ["public.portal.example", "shared.example/open"], total: { rates: "3/SECOND" } },
    },
  } as const;

  async function serviceIdentity(hosts: IdentitiesOptions["hosts"] = {}): Promise<CallerIdentity> {
    const services = { portal: { query: { mail: "{mailto}" }, headers: { "X-Token": "{A_TOKEN}" } } };
    const { identities, ratelimits: limits } = await loadPolicy({
      ratelimits,
      identities: { extends: "none", hosts, services },
      env,
      mailto,
    });
    return new CallerIdentity({ identities, routing: limits.resolved.routing, version: "0.1.0" });
  }
  const token = (some: CallerIdentity, origin: string, path?: string) =>
    fields(some.apply(request(origin, path)).headers)["x-token"];

  test("go to its members and to nothing else, as the routing of the limits finds them", async () => {
    const some = await serviceIdentity();
    for (const [origin, path] of [
      ["https://a.portal.example", "/x"],
      ["https://loose.example", "/"],
      ["https://shared.example", "/api/works?page=2"],
      ["https://shared.example", "/Web/works"],
    ] as const) {
      const sent = some.apply(request(origin, path));
      assert.equal(fields(sent.headers)["x-token"], "t0ken-of-ours", origin);
      assert.match(sent.path, /mail=you%40example\.org/, origin);
    }
    for (const [origin, path] of [
      ["https://portal.example", "/x"],
      ["https://public.portal.example", "/x"],
      ["https://shared.example", "/"],
      ["https://shared.example", "/open/x"],
      ["https://loose.example.evil.example", "/"],
    ] as const) {
      assertUnchanged(some, request(origin, path, ["user-agent", "mine/1"]));
    }
  });

  test("go to the path of a member as the policy writes it, because servers read other spellings differently", async () => {
    const some = await serviceIdentity();
    for (const path of [
      "/web/x",
      "/API/x",
      "/api/../admin",
      "/api/%2e%2e/admin",
      "//api/x",
      "/%61pi/x",
      "http://evil.example/api/x",
    ])
      assert.equal(token(some, "https://shared.example", path), undefined, path);
  });

  test("with a key are sent over https and to the standard port only", async () => {
    const some = await serviceIdentity();
    for (const origin of ["http://loose.example", "https://loose.example:8443"]) {
      assert.equal(token(some, origin), undefined, origin);
      assert.match(some.apply(request(origin)).path, /mail=/, origin);
    }
  });

  test("are replaced one by one by the fields of the host", async () => {
    const some = await serviceIdentity({ "loose.example": { path: "/own", headers: { "x-token": "{A_KEY}" } } });
    assert.equal(token(some, "https://loose.example", "/own/x"), key);
    assert.match(some.apply(request("https://loose.example", "/own/x")).path, /mail=/);
    assert.equal(token(some, "https://loose.example", "/x"), "t0ken-of-ours");
  });

  test("are not sent to a host that removes them, or whose own field has no value", async () => {
    const some = await serviceIdentity({
      "removed.portal.example": false,
      "port.portal.example": { headers: { "x-own": "{A_KEY}" } },
      "port.portal.example:8443": null,
      "null.portal.example": { headers: { "X-Token": null } },
      "unset.portal.example": { headers: { "x-token": "{NOT_SET}" } },
      "path.portal.example": { path: "/api", headers: { "x-token": false } },
    });
    const sent = (host: string, path = "/") => {
      const { path: target, headers } = some.apply(request(`https://${host}`, path));
      return [fields(headers)["x-token"], target.includes("mail=")];
    };
    assert.deepEqual(sent("removed.portal.example"), [undefined, false]);
    assert.deepEqual(sent("port.portal.example:8443"), [undefined, false]);
    assert.deepEqual(sent("port.portal.example"), ["t0ken-of-ours", true]);
    assert.deepEqual(sent("null.portal.example"), [undefined, true]);
    assert.deepEqual(sent("unset.portal.example"), [undefined, true]);
    assert.deepEqual(sent("path.portal.example", "/api/x"), [undefined, true]);
    assert.deepEqual(sent("path.portal.example", "/x"), ["t0ken-of-ours", true]);
  });

  test("are removed from the Location of a redirect to another host", async () => {
    const some = await serviceIdentity();
    const head: ResponseHead = {
      status: 302,
      statusText: "Found",
      headers: { location: "https://evil.example/?mail=you%40example.org&t=t0ken-of-ours" },
      rawHeaders: {},
    };
    const clean = some.scrub(head, request("https://a.portal.example"));
    assert.equal(clean.headers["location"], "https://evil.example/");
  });

  test("select the tier of the limits exactly where they are sent", async () => {
    const tiered = {
      extends: "none",
      services: {
        portal: { ...ratelimits.services.portal, with: { A_TOKEN: { total: { rates: "9/SECOND" } } } },
      },
    } as const;
    const services = { portal: { headers: { "x-token": "{A_TOKEN}" } } };
    const load = (identities: IdentitiesOptions) => loadPolicy({ ratelimits: tiered, identities, env });
    const totalAt = (policy: LoadedPolicy, host: string, path: string) =>
      policy.ratelimits.resolved.route(host, "metadata", path).above[0]?.policy.labels.join();
    const policy = await load({ extends: "none", services });
    for (const [host, path] of [
      ["a.portal.example", "/x"],
      ["shared.example", "/api/x"],
      ["shared.example", "/%61pi/x"],
      ["shared.example", "/api/x"],
      ["shared.example", "/Web/x"],
      ["shared.example", "/web/x"],
    ] as const) {
      const some = new CallerIdentity({ ...policy, routing: policy.ratelimits.resolved.routing, version: "1" });
      const isSent = token(some, `https://${host}`, path) !== undefined;
      assert.equal(totalAt(policy, host, path), isSent ? "9/SECOND" : "3/SECOND", `${host}${path}`);
    }
    assert.equal(totalAt(await load({ extends: "none" }), "a.portal.example", "/x"), "3/SECOND");
  });

  test("of a service that the limits do not have, or that has no members, are an error with a suggestion", async () => {
    await assert.rejects(
      loadPolicy({ ratelimits, identities: { services: { portals: { query: { a: "{tool}" } } } } }),
      /services\.portals: ratelimits\.yaml has no service of this name; did you mean portal\?/,
    );
    const own = { per_host: true, metadata: { rates: "1/SECOND" } } as const;
    await assert.rejects(
      loadPolicy({ ratelimits: { services: { own } }, identities: { services: { own: { query: { a: "{tool}" } } } } }),
      /services\.own: a service with per_host has no members to send fields to; name its hosts under hosts/,
    );
  });
});
