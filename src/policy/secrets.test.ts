import assert from "node:assert/strict";
import { test } from "node:test";
import { ConfigError } from "../errors.ts";
import { loadPolicy, type PolicySources } from "./load.ts";
import { loadIdentities } from "./load-identities.ts";

const PASSWORD = "hunter2";
const ADDRESSES = [
  `redis://user:${PASSWORD}@cache.example:6379`,
  `user:${PASSWORD}@cache.example`,
  `redis:/user:${PASSWORD}@h`,
  `redis://user:a"b ${PASSWORD}@h`,
  `redis://${"u".repeat(90)}:${PASSWORD}@h`,
  `redis://u:${PASSWORD}/x@h`,
  `redis://u:${PASSWORD}`,
  `redis://h?password=${PASSWORD}`,
];
const VARIABLES = [
  "DOCSTOKG_RLIMITS",
  "DOCSTOKG_RLIMITS_YAML",
  "DOCSTOKG_RLIMIT_BACKEND",
  "DOCSTOKG_MAX_INFLIGHT",
  "DOCSTOKG_AIMD",
  "DOCSTOKG_BREAKERS",
  "DOCSTOKG_BREAKER_ADV__ROLLING",
  "DOCSTOKG_BREAKER_COOLDOWN_BACKEND",
  "DOCSTOKG_RLIMIT__api.example.org__metadata",
  "DOCSTOKG_BREAKER__api.example.org",
];

/** Every place of a policy into which a user may paste the address of a store. */
function sourcesWith(address: string): readonly PolicySources[] {
  const flags = ["rate", "breaker", "breakerRole", "breakerResolver"];
  const values = ["rateBackend", "maxInflight", "aimd", "breakerRolling"];
  const documents = [
    { hosts: { [address]: {} } },
    { hosts: { "a.example": address } },
    { hosts: { "a.example": { metadata: { rates: address } } } },
    { groups: { a: { members: [address] } } },
    { backend: address },
    { dsn: address },
    { [address]: {} },
  ];
  return [
    ...VARIABLES.map(name => ({ env: { [name]: address } })),
    { env: { DOCSTOKG_RLIMITS: `${address}=x` } },
    { env: { DOCSTOKG_RLIMITS: `a.example:metadata=rates:${address}` } },
    { env: { DOCSTOKG_RLIMITS: `a.example:metadata=${address}` } },
    ...flags.flatMap(flag => [{ overrides: { [flag]: [address] } }, { overrides: { [flag]: [`${address}=a`] } }]),
    ...values.map(flag => ({ overrides: { [flag]: address } })),
    ...documents.map(ratelimits => ({ ratelimits: ratelimits as never })),
    { ratelimits: address },
  ];
}

test("the error for a malformed entry does not contain a password, wherever the address was written", async () => {
  for (const address of ADDRESSES) {
    for (const sources of sourcesWith(address)) {
      const error = await loadPolicy(sources).then(
        () => assert.fail(`accepted: ${JSON.stringify(sources)}`),
        (reason: unknown) => reason,
      );
      assert.ok(error instanceof ConfigError, String(error));
      assert.ok(!`${error.message} ${JSON.stringify(error.problems)}`.includes(PASSWORD), error.message);
    }
    await assert.rejects(
      loadIdentities({ identities: address }),
      (error: Error) => error instanceof ConfigError && !error.message.includes(PASSWORD),
    );
  }
});

test("the error for a malformed entry names the source and the host that follows the password", async () => {
  await assert.rejects(loadPolicy({ env: { DOCSTOKG_RLIMITS: ADDRESSES[0] } }), {
    message: 'DOCSTOKG_RLIMITS: "redis://…@cache.example:6379" has no "="; expected <name>=<key>:<value>,...',
  });
  await assert.rejects(loadPolicy({ env: { DOCSTOKG_RLIMITS_YAML: ADDRESSES[1] } }), {
    message: "DOCSTOKG_RLIMITS_YAML=…@cache.example: file not found",
  });
});
