import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { StoreError } from "../../errors.ts";
import { addressText, isRedisUrl, parseRedisUrl } from "./redis-url.ts";

const PLAIN = {
  kind: "server",
  hosts: [{ host: "h", port: 6379 }],
  primaryName: "",
  credentials: {},
  sentinelCredentials: {},
  database: 0,
  tls: undefined,
  prefix: undefined,
  timeoutMs: undefined,
};

test("a Redis URL names a server, a set of sentinels or the nodes of a cluster", () => {
  const parsed: Readonly<Record<string, object>> = {
    "redis://h": {},
    "redis://h/": {},
    "redis://h:7000/3": { hosts: [{ host: "h", port: 7000 }], database: 3 },
    "redis://[::1]:7000": { hosts: [{ host: "::1", port: 7000 }] },
    "redis://me@h": { credentials: { username: "me" } },
    "redis://:p%40ss%2F@h": { credentials: { password: "p@ss/" } },
    "redis://me:a:b@h": { credentials: { username: "me", password: "a:b" } },
    "redis://h?prefix=mine&timeoutMs=2500": { prefix: "mine", timeoutMs: 2500 },
    "rediss://h?ca=/etc/ca.pem&cert=c.pem&key=k.pem": { tls: { ca: "/etc/ca.pem", cert: "c.pem", key: "k.pem" } },
    "redis://h?cluster=false": {},
    "redis://a,b:7001?cluster=true": {
      kind: "cluster",
      hosts: [
        { host: "a", port: 6379 },
        { host: "b", port: 7001 },
      ],
    },
    "redis+sentinel://a,b:7001/limits/2?sentinelUser=s&sentinelPassword=t": {
      kind: "sentinel",
      hosts: [
        { host: "a", port: 26_379 },
        { host: "b", port: 7001 },
      ],
      primaryName: "limits",
      database: 2,
      sentinelCredentials: { username: "s", password: "t" },
    },
    "rediss+sentinel://h:1/limits": {
      kind: "sentinel",
      hosts: [{ host: "h", port: 1 }],
      primaryName: "limits",
      tls: {},
    },
  };
  for (const [url, expected] of Object.entries(parsed)) {
    assert.deepEqual(parseRedisUrl(url), { ...PLAIN, ...expected }, url);
    assert.equal(isRedisUrl(url), true);
  }
});

test("the text for messages has neither user name nor password nor parameters", () => {
  assert.equal(addressText(parseRedisUrl("redis://u:zqret@h:1/2?prefix=x")), "h:1/2");
  assert.equal(addressText(parseRedisUrl("redis+sentinel://u:zqret@a,b/limits/2")), "a:26379,b:26379/limits/2");
  assert.equal(addressText(parseRedisUrl("redis://[::1],b?cluster=true")), "[::1]:6379,b:6379");
});

test("an invalid Redis URL is an error that says what is wrong", () => {
  const problems: Readonly<Record<string, RegExp>> = {
    "http://h": /expected redis:\/\/user:password@host:6379\/0 or redis\+sentinel:/,
    "redis://": /a host is missing/,
    "redis://u:zqret@": /a host is missing/,
    "redis://u:zqret": /a host is missing, or a port is not a number from 1 to 65535/,
    "redis://h:0": /a port is not a number/,
    "redis://h:65536": /a port is not a number/,
    "redis://a,,b?cluster=true": /a host is missing/,
    "redis://u:zq/ret@h": /must be percent-encoded/,
    "redis://u:zq?ret@h": /must be percent-encoded/,
    "redis://u:zq#ret@h": /must be percent-encoded/,
    "redis://u:p@zq?ret@h:6379/0": /must be percent-encoded/,
    "redis://u:p@zq/ret@h": /must be percent-encoded/,
    "redis://u:p@zq#ret@h": /must be percent-encoded/,
    "redis://u:zq?ret": /a host is missing, or a port is not a number/,
    "redis://u:zqret%@h": /a % in a user name, a password or the name of the sentinels' server must be written as %25/,
    "redis://h#x": /# has no meaning here/,
    "redis://h/x": /the path must be the number of the database/,
    "redis://h/0/1": /the path must be the number of the database/,
    "redis://a,b": /several hosts need \?cluster=true \(a cluster\) or redis\+sentinel:/,
    "redis://h?cluster=yes": /expected cluster=true or cluster=false, not cluster=yes/,
    "redis://h/1?cluster=true": /a cluster has only database 0/,
    "redis://h?clustr=true": /unknown Redis parameter "clustr", expected "prefix", "timeoutMs", "cluster"$/,
    "redis://h?ca=x": /the parameter "ca" needs TLS: rediss:/,
    "redis://h?sentinelUser=x": /the parameter "sentinelUser" needs redis\+sentinel:/,
    "rediss://h?cert=x": /needs both parameters: "cert" and "key"/,
    "redis://h?timeoutMs=0": /timeoutMs must be a whole number of milliseconds from 1 to 600000/,
    "redis://h?timeoutMs=1s": /timeoutMs must be a whole number/,
    "redis+sentinel://h": /the name that the sentinels monitor is missing/,
    "redis+sentinel://h/": /the name that the sentinels monitor is missing/,
    "redis+sentinel://h/limits/x": /expected \/name or \/name\/number/,
    "redis+sentinel://h/limits?cluster=true": /the parameter "cluster" has no effect with sentinels/,
  };
  for (const [url, expected] of Object.entries(problems)) {
    assert.throws(
      () => parseRedisUrl(url),
      error => {
        assert.ok(error instanceof StoreError, url);
        assert.match(error.message, expected, url);
        assert.doesNotMatch(error.message, /zq|ret/, url);
        return true;
      },
    );
  }
});

test("whatever the text is, parsing ends with an address or a StoreError without the password", () => {
  const password = fc.stringMatching(/^[!-~]{8,20}$/);
  fc.assert(
    fc.property(password, fc.constantFrom("redis://", "rediss://", "redis+sentinel://"), (secret, scheme) => {
      for (const url of [`${scheme}user:${secret}@h/0`, `${scheme}user:${secret}`, scheme + secret]) {
        try {
          parseRedisUrl(url);
        } catch (error) {
          assert.ok(error instanceof StoreError, String(error));
          if (url.includes("user:")) assert.ok(!error.message.includes(secret), error.message);
        }
      }
    }),
  );
});
