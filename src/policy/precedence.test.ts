import assert from "node:assert/strict";
import { test } from "node:test";
import { formatRates } from "../core/limits/rate.ts";
import { createHub } from "../index.ts";
import { explainPolicy } from "./explanation.ts";
import { loadPolicy, type PolicySources } from "./load.ts";
import { memberList } from "./member.ts";
import { hostPolicyRows } from "./policy-row.ts";

const host = "a.example";
const alone = { extends: "none" } as const;

async function explained(sources: PolicySources, field: string, role: "metadata" | "artifact" = "metadata") {
  const policy = await loadPolicy(sources);
  const value = explainPolicy(policy, host, role).find(candidate => candidate.field === field);
  return [value?.value, value?.sources.at(-1)?.path];
}

test("explain names the place that sets the mode of the limits: top level, defaults, service, host", async () => {
  const shadow = { mode: "shadow" } as const;
  const top = { ...alone, ...shadow };
  assert.deepEqual(await explained({ ratelimits: alone }, "mode"), ["enforce", ""]);
  assert.deepEqual(await explained({ ratelimits: top }, "mode"), ["shadow", "mode"]);
  const defaults = { ...alone, defaults: { metadata: shadow } };
  assert.deepEqual(await explained({ ratelimits: defaults }, "mode"), ["shadow", "defaults.metadata.mode"]);
  const groups = { pair: { members: [host], metadata: { mode: "enforce" as const } } };
  assert.deepEqual(await explained({ ratelimits: { ...top, groups } }, "mode"), [
    "enforce",
    "services.pair.metadata.mode",
  ]);
  const hosts = { [host]: { metadata: shadow } };
  assert.deepEqual(await explained({ ratelimits: { ...alone, groups, hosts } }, "mode"), [
    "shadow",
    "hosts.a.example.metadata.mode",
  ]);
});

test("explain names the place that sets the mode of the breaker: top level or host", async () => {
  const top = { ...alone, mode: "shadow" as const };
  assert.deepEqual(await explained({ breakers: alone }, "breaker.mode"), ["enforce", ""]);
  assert.deepEqual(await explained({ breakers: top }, "breaker.mode"), ["shadow", "mode"]);
  const hosts = { [host]: { mode: "enforce" as const } };
  assert.deepEqual(await explained({ breakers: { ...top, hosts } }, "breaker.mode"), [
    "enforce",
    "hosts.a.example.mode",
  ]);
});

test("policyFor shows shadow mode of limits and breakers", async () => {
  const hub = await createHub({
    policy: {
      ratelimits: { extends: "none", hosts: { [host]: { artifact: { mode: "shadow" } } } },
      breakers: { extends: "none", hosts: { [host]: { mode: "shadow" } } },
    },
  });
  const modes = (name: string, role: "metadata" | "artifact") => {
    const { mode, breakerMode } = hub.policyFor(name, role);
    return [mode, breakerMode];
  };
  assert.deepEqual(modes(host, "artifact"), ["shadow", "shadow"]);
  assert.deepEqual(modes(host, "metadata"), ["enforce", "shadow"]);
  assert.deepEqual(modes("other.example", "artifact"), ["enforce", "enforce"]);
  await hub.close();
});

test("a flag wins over the environment, the environment over the file, and explain names all three", async () => {
  const crossref = "api.crossref.org";
  const ratelimits = { hosts: { [crossref]: { metadata: { rates: "7/SECOND" } } } };
  const sources = {
    ratelimits,
    env: { [`DOCSTOKG_RLIMIT__${crossref}__metadata`]: "rates:6/SECOND" },
    overrides: { rate: [`${crossref}:metadata=rates:5/SECOND`] },
  };
  const policy = await loadPolicy(sources);
  assert.equal(formatRates(policy.ratelimits.resolved.route(crossref, "metadata").roleBudget.rates), "5/SECOND");
  const rates = explainPolicy(policy, crossref, "metadata").find(({ field }) => field === "rates");
  assert.deepEqual(
    rates?.sources.slice(-3).map(({ where, value }) => [where, value]),
    [
      ["policy.ratelimits", "7/SECOND"],
      [`DOCSTOKG_RLIMIT__${crossref}__metadata`, "6/SECOND"],
      ["--rate", "5/SECOND"],
    ],
  );
  assert.equal(rates?.value, "5/SECOND");
});

test("explain, policy rows and routes agree for every host and member that is shipped", async () => {
  const policy = await loadPolicy();
  const { hosts = {}, services = {} } = policy.ratelimits.options;
  const members = Object.values(services).flatMap(({ members: list }) => memberList(list));
  for (const place of [...Object.keys(hosts), ...members, "unlisted.example"]) {
    const [host = "", ...rest] = place.replace("*.", "portal.").split("/");
    const path = rest.length > 0 ? `/${rest.join("/")}/x` : undefined;
    for (const role of ["metadata", "landing", "artifact"] as const) {
      const { roleBudget: found, above } = policy.ratelimits.resolved.route(host, role, path);
      const explained = explainPolicy(policy, host, role, path);
      const effective = (field: string) => explained.find(value => value.field === field)?.value;
      const rates = effective("rates") as string | readonly string[];
      assert.equal([rates].flat().join("+"), formatRates(found.rates), `${place} ${role}`);
      assert.equal(effective("max_delay_ms"), found.maxDelayMs, `${place} ${role}`);
      assert.equal(effective("guard_ms"), found.guardUs / 1000, `${place} ${role}`);
      const totals = explained.filter(({ field }) => field.endsWith("total.rates"));
      assert.equal(totals.length, above.filter(total => total.policy.rates.length > 0).length, `${place} ${role}`);
      const row = hostPolicyRows(policy, { host, path }).find(candidate => candidate.role === role);
      assert.equal(row?.rates, found.labels.join(" + "), `${place} ${role}`);
      const { failMax, resetUs } = policy.breakers.resolved.circuit(
        policy.breakers.resolved.route(host, path).circuit,
        role,
      );
      assert.equal(effective("breaker.fail_max"), failMax, `${place} ${role}`);
      assert.equal(effective("breaker.reset_timeout_s"), resetUs / 1e6, `${place} ${role}`);
      assert.equal(effective("mode"), row?.mode, `${place} ${role}`);
      assert.equal(effective("breaker.mode"), row?.breakerMode, `${place} ${role}`);
      assert.equal(effective("breaker.retry_after_cap_s"), row?.retryAfterCapS, `${place} ${role}`);
      assert.equal(effective("breaker.trial_calls"), row?.trialCalls, `${place} ${role}`);
    }
  }
});
