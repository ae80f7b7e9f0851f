import assert from "node:assert/strict";
import { formatRates, parseRateMap, parseRates } from "../../src/core/limits/rate.ts";
import { canonicalHost, urlHost } from "../../src/core/text/host.ts";
import { redactedText } from "../../src/core/text/redaction.ts";
import { ConfigError, StoreError } from "../../src/errors.ts";
import { parseS3Url } from "../../src/files/s3/s3-url.ts";
import { parseBreakers } from "../../src/policy/breaker-schema.ts";
import { parseTargetText } from "../../src/policy/breaker-target.ts";
import { readFlags } from "../../src/policy/flag-layer.ts";
import { assemble } from "../../src/policy/layer.ts";
import { memberText, parseMember } from "../../src/policy/member.ts";
import { readPlainYaml } from "../../src/policy/plain-yaml.ts";
import { parseRatelimits } from "../../src/policy/ratelimit-schema.ts";
import { readYamlLayer } from "../../src/policy/yaml-layer.ts";
import { parsePostgresStoreUrl } from "../../src/stores/postgres/postgres-store-url.ts";
import { parseRedisUrl } from "../../src/stores/redis/redis-url.ts";
import { type FuzzTarget, parsed } from "../target.ts";

const NAMES = { hosts: new Set(["api.example.org"]), services: new Set(["arxiv"]) };

export const policyTargets: readonly FuzzTarget[] = [
  {
    name: "rates",
    seeds: ["10/SECOND", "1/3SECOND+300/min", "ols:4/second;bioportal:none"],
    words: ["/", "+", ";", ":", "SECOND", "min", "HOUR", "DAY", "ms", "none"],
    run: input => {
      const text = input.toString();
      parsed(() => parseRateMap(text), RangeError);
      const rates = parsed(() => parseRates(text), RangeError);
      if (rates !== undefined) assert.deepEqual(parseRates(formatRates(rates)), rates);
    },
  },
  {
    name: "policy-yaml",
    seeds: [
      "defaults: { metadata: { rates: 10/SECOND } }\nhosts:\n  a.example: &a\n    total: { rates: [1/SECOND] } # note\n  b.example: *a\n",
      "services:\n  arxiv: { members: !replace [arxiv.org, '*.hal.science/x'], total: { rates: 1/3SECOND, max_concurrent: 1 } }",
      "defaults: { fail_max: 5, classify: { failure_statuses: [500] } }\nadvanced: { rolling_window: { enabled: true } }",
    ],
    words: [
      "hosts:",
      "defaults:",
      "services:",
      "rates:",
      "\n  ",
      "- ",
      "&a ",
      "*a",
      "!replace ",
      "<<: ",
      "---\n",
      "? ",
      "|\n",
      "{",
      "}",
      "[",
      "]",
      "# ",
    ],
    run: input => {
      const text = input.toString();
      const { assignments, problems } = readYamlLayer(text, "policy.yaml");
      const plain = readPlainYaml(text, "policy.yaml");
      if (plain !== undefined) assert.deepEqual({ plain, problems }, { plain: assignments, problems: [] });
      for (const { where, message } of problems) assert(where.startsWith("policy.yaml") && message !== "", "a place");
      for (const { where } of assignments) assert.match(where, /^policy\.yaml:\d+$/);
      const value = assemble(assignments);
      parsed(() => parseRatelimits(value, "policy.yaml"), ConfigError);
      parsed(() => parseBreakers(value, "policy.yaml"), ConfigError);
    },
  },
  {
    name: "overrides",
    seeds: [
      "api.example.org:metadata=rates:3/SECOND,max_delay_ms:500",
      "service:arxiv:total=1/SECOND",
      "defaults=fail_max:3",
    ],
    words: [
      "=",
      ":",
      ",",
      "service:",
      "defaults",
      "resolver:",
      "metadata",
      "total",
      "rates:",
      "none",
      "fail_max:",
      "{",
      "[",
    ],
    run: input => {
      const text = input.toString();
      const list = [text];
      for (const { assignments, problems } of [
        readFlags("ratelimits", { rate: list, aimd: text }, NAMES),
        readFlags("breakers", { breaker: list, breakerRole: list, breakerResolver: list, breakerRolling: text }, NAMES),
      ]) {
        for (const { path } of assignments) assert(path.length > 0 && !path.includes("__proto__"), "a path");
        for (const { message } of problems) assert(message !== "", "a message");
        assemble(assignments);
      }
      parseTargetText(text);
    },
  },
  {
    name: "hosts",
    seeds: [
      "Example.ORG.",
      "[::1]:8080",
      "0x7f.1",
      "müller.example",
      "*.hal.science/a%2Fb/../c",
      "http://u:p@a.example:80/x?y#z",
    ],
    words: [".", ":", "[", "]", "::", "%2e", "xn--", "//", "@", "0x", "ffff:"],
    run: input => {
      const text = input.toString();
      const host = parsed(() => canonicalHost(text), RangeError);
      if (host !== undefined) assert.equal(canonicalHost(host), host);
      const url = parsed(() => urlHost(text), RangeError);
      if (url !== undefined) assert.equal(canonicalHost(url.host), url.host);
      const member = parsed(() => parseMember(text), RangeError);
      // The text of a member has its normalised path.
      if (member !== undefined)
        assert.deepEqual({ ...parseMember(memberText(member)), writtenPath: member.writtenPath }, member);
    },
  },
  {
    name: "store-urls",
    seeds: [
      "redis://user:secret@host:6379/2?prefix=a",
      "rediss+sentinel://a,b:1/name?sentinelUser=u",
      "postgres://u:secret@h:5432/db?schema=s",
      "s3://bucket/prefix/",
    ],
    words: ["redis://", "?cluster=true", "&timeoutMs=", "@", ":", ",", "/", "%40", "#", "schema="],
    run: input => {
      const text = input.toString();
      parsed(() => parseRedisUrl(text), StoreError);
      parsed(() => parsePostgresStoreUrl(text), RangeError);
      const location = parsed(() => parseS3Url(text, "--out"), ConfigError);
      if (location !== undefined)
        assert.deepEqual(parseS3Url(`s3://${location.bucket}/${location.prefix}`, "--out"), location);
    },
  },
  {
    name: "redaction",
    seeds: [
      "GET https://u:p@a.example/x?api_key=abc&b=1",
      "authorization: Bearer abc.def.ghi",
      "mail jo@example.org token=1",
    ],
    words: ["api_key=", "token", ":", "=", "//", "@", "Bearer ", "-----BEGIN PRIVATE KEY-----", "secret", '"', "AKIA"],
    run: input => {
      const text = input.toString();
      for (const secret of ["api_key=Vq8x7", "authorization: Bearer Vq8x7", "https://user:Vq8x7@a.example/"])
        assert(!redactedText(`${text}\n${secret}\n${text}`).includes("Vq8x7"), secret);
    },
  },
];
