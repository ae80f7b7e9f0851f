import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { policyFacts } from "../cli/docstokg/why-facts.ts";
import { outcomeOfResponse } from "../core/breaker/classify.ts";
import { RejectedError } from "../errors.ts";
import { BreakerRegistry } from "../gate/breaker-registry.ts";
import { Gate } from "../gate/gate.ts";
import { breakersOf } from "../gate/registry-breakers.ts";
import { HostNames } from "../http/host-names.ts";
import { FakeTime } from "../testing/fake-time.ts";
import type { BreakersOptions } from "./breaker-options.ts";
import { explainPolicy } from "./explanation.ts";
import { type LoadedPolicy, loadPolicy } from "./load.ts";
import { hostPolicyRows, policyRows } from "./policy-row.ts";
import type { RatelimitsOptions } from "./ratelimit-options.ts";
import { ROLES, type Role } from "./roles.ts";
import { policyTarget } from "./target.ts";

/**
 * The rules of the policy, written a second time as a plain search, so that every view of the policy can be compared
 * with it. Rates are `<limit>/s`, so that a budget admits `limit` requests at one instant.
 */

interface Url {
  readonly host: string;
  readonly port: number;
  readonly path: string;
}

type Fields = Readonly<Record<string, string | number>>;
type Entry = Partial<Readonly<Record<Role | "total", Fields>>>;
interface Document {
  readonly defaults: Entry;
  readonly services: Readonly<Record<string, Entry & { readonly members: readonly string[] }>>;
  readonly hosts: Readonly<Record<string, Entry>>;
}
type Circuit = Fields & { readonly roles?: Readonly<Record<string, Fields>> };
interface BreakerDocument {
  readonly defaults: Circuit;
  readonly services: Readonly<Record<string, Circuit>>;
  readonly hosts: Readonly<Record<string, Circuit>>;
}

/** The service of the most specific member that contains the URL, and the hosts whose own entries apply. */
function expectedService({ services }: Document, { host, port, path }: Url) {
  const candidates = Object.entries(services).flatMap(([service, { members }]) =>
    members.map(member => {
      const [name = "", ...rest] = member.split("/");
      return { service, name, path: rest.map(part => `/${part}`).join("") };
    }),
  );
  const hostRank = (name: string) => {
    if (name === `${host}:${port}`) return 1000;
    if (name === host) return 999;
    return name.startsWith("*.") && host.endsWith(name.slice(1)) ? name.length : 0;
  };
  const rank = (candidate: (typeof candidates)[number]) => hostRank(candidate.name) * 1000 + candidate.path.length;
  const [best] = candidates
    .filter(candidate => hostRank(candidate.name) > 0 && `${path}/`.startsWith(`${candidate.path}/`))
    .toSorted((a, b) => rank(b) - rank(a));
  const isPort = best?.name === `${host}:${port}`;
  const names = isPort ? [`${host}:${port}`] : [host, `${host}:${port}`];
  return { service: best?.service, names: best !== undefined && best.path !== "" ? [] : names };
}

function expectedPolicy(limits: Document, breakers: BreakerDocument, url: Url, role: Role) {
  const { service, names } = expectedService(limits, url);
  const listed = names.filter(name => limits.hosts[name] !== undefined);
  const places = [
    ...(service === undefined ? [] : [limits.services[service]]),
    ...listed.map(name => limits.hosts[name]),
  ];
  const paths = [
    "defaults",
    ...(service === undefined ? [] : [`services.${service}`]),
    ...listed.map(name => `hosts.${name}`),
  ];
  const field = <Value>(name: string, builtIn: Value) =>
    [limits.defaults, ...places].reduce<Value>((value, entry) => (entry?.[role]?.[name] as Value) ?? value, builtIn);
  const totals = places.flatMap(entry => entry?.total?.["rates"] ?? []);
  const circuitOwner = names.findLast(name => breakers.hosts[name] !== undefined);
  const circuits = [
    breakers.defaults,
    ...(service === undefined ? [] : [breakers.services[service] ?? {}]),
    ...names.map(name => breakers.hosts[name] ?? {}),
  ];
  const circuit = (name: string, builtIn: number) =>
    circuits.reduce<number>((value, entry) => (entry.roles?.[role]?.[name] ?? entry[name] ?? value) as number, builtIn);
  const host = [limits.hosts, breakers.hosts].some(hosts => hosts[`${url.host}:${url.port}`] !== undefined)
    ? `${url.host}:${url.port}`
    : url.host;
  const isNamed = Object.values(limits.services).some(({ members }) =>
    members.some(member => member.split("/")[0] === `${url.host}:${url.port}`),
  );
  const shownHost = isNamed ? `${url.host}:${url.port}` : host;
  const shared = service === undefined ? undefined : `service ${service}`;
  const decides = [limits.defaults, ...places].findLastIndex(entry => entry?.[role]?.["rates"] !== undefined);
  return {
    service,
    host: shownHost,
    /** The key that decides about the rates. */
    ratesPath: `${paths[Math.max(0, decides)]}.${role}.rates`,
    rates: field<string>("rates", { metadata: "10/s", landing: "5/s", artifact: "2/s" }[role]),
    maxDelayMs: field<number>("max_delay_ms", { metadata: 200, landing: 250, artifact: 2000 }[role]),
    mode: field<string>("mode", "enforce"),
    totals: totals as readonly string[],
    circuit: circuitOwner ?? shared ?? shownHost,
    failMax: circuit("fail_max", { metadata: 5, landing: 4, artifact: 3 }[role]),
    resetS: circuit("reset_timeout_s", { metadata: 45, landing: 60, artifact: 120 }[role]),
  };
}

const HOSTS = ["a.example", "b.example", "x.b.example", "y.x.b.example"];
const PATHS = ["", "/p", "/p/q", "/r"];
const PORT = 8080;

const rate = fc.integer({ min: 1, max: 5 }).map(limit => `${limit}/s`);
const roleFields = fc.record(
  {
    rates: rate,
    max_delay_ms: fc.constantFrom(0, 100, 3000),
    mode: fc.constantFrom("enforce", "shadow"),
  },
  { requiredKeys: [] },
);
const roleName = fc.constantFrom(...ROLES);
const entry = fc
  .tuple(fc.dictionary(roleName, roleFields, { maxKeys: 2 }), fc.option(fc.record({ rates: rate }), { nil: undefined }))
  .map(([roles, total]) => (total === undefined ? { ...roles } : { ...roles, total }) as Entry);
const hostName = fc.constantFrom(...HOSTS, ...HOSTS.map(host => `${host}:${PORT}`));
const member = fc
  .tuple(fc.constantFrom("", "*."), fc.constantFrom(...HOSTS, `a.example:${PORT}`), fc.constantFrom(...PATHS))
  .filter(([suffix, host]) => suffix === "" || !host.includes(":"))
  .map(([suffix, host, path]) => `${suffix}${host}${path}`);
const limitsDocument: fc.Arbitrary<Document> = fc
  .tuple(
    fc.dictionary(roleName, roleFields, { maxKeys: 3 }),
    fc.dictionary(hostName, entry, { maxKeys: 3 }),
    fc.uniqueArray(member, { maxLength: 8 }),
    fc.array(fc.tuple(fc.integer({ min: 0, max: 2 }), entry), { minLength: 3, maxLength: 3 }),
    fc.array(fc.integer({ min: 0, max: 2 }), { minLength: 8, maxLength: 8 }),
  )
  .map(([defaults, hosts, members, entries, owners]) => {
    const services = Object.fromEntries(
      entries.flatMap(([, fields], index) => {
        const own = members.filter((_, at) => owners[at] === index);
        return own.length === 0 ? [] : [[`s${index}`, { ...fields, members: own }]];
      }),
    );
    return { defaults: { ...defaults } as Entry, hosts: { ...hosts }, services } as Document;
  });
const circuitFields = fc.record(
  { fail_max: fc.integer({ min: 1, max: 4 }), reset_timeout_s: fc.constantFrom(10, 20, 30) },
  { requiredKeys: [] },
);
const circuitEntry = fc
  .tuple(circuitFields, fc.dictionary(roleName, circuitFields, { maxKeys: 1 }))
  .map(([fields, roles]) => ({ ...fields, roles: { ...roles } }) as unknown as Circuit);
const breakersDocument: fc.Arbitrary<BreakerDocument> = fc.record({
  defaults: circuitEntry,
  hosts: fc.dictionary(hostName, circuitEntry, { maxKeys: 2 }).map(hosts => ({ ...hosts })),
  services: fc.dictionary(fc.constantFrom("s0", "s1", "s2"), circuitEntry, { maxKeys: 2 }).map(all => ({ ...all })),
});
const url: fc.Arbitrary<Url> = fc.record({
  host: fc.constantFrom(...HOSTS),
  port: fc.constantFrom(443, PORT),
  path: fc.constantFrom(...PATHS, "/p/q/z", "/pq"),
});

/** A rate of the document as a flag, in one of the forms that address it. */
interface Override {
  readonly target: string;
  readonly role: Role;
  readonly limit: number;
  readonly isFlag: boolean;
}
const override: fc.Arbitrary<Override> = fc.record({
  target: fc.constantFrom("defaults", "service:s0", "service:s1", "s2", "a.example", `host:b.example:${PORT}`),
  role: roleName,
  limit: fc.integer({ min: 1, max: 5 }),
  isFlag: fc.boolean(),
});

function withOverride(document: Document, { target, role, limit }: Override): Document | undefined {
  const rates = { rates: `${limit}/s` };
  const changed = (known: Entry | undefined) => ({ ...known, [role]: { ...known?.[role], ...rates } });
  const name = target.replace(/^(?:service|host):/, "");
  if (target === "defaults") return { ...document, defaults: changed(document.defaults) };
  if (/^s\d$/.test(name)) {
    const service = document.services[name];
    if (service === undefined) return undefined;
    return {
      ...document,
      services: { ...document.services, [name]: { ...changed(service), members: service.members } },
    };
  }
  return { ...document, hosts: { ...document.hosts, [name]: changed(document.hosts[name]) } };
}

function pathOf({ target, role }: Override): string {
  const name = target.replace(/^(?:service|host):/, "");
  if (target === "defaults") return `defaults.${role}.rates`;
  return `${/^s\d$/.test(name) ? "services" : "hosts"}.${name}.${role}.rates`;
}

const limitOf = (rates: string) => Number(rates.slice(0, rates.indexOf("/")));

/** Requests that the gate admits at one instant; at most 12. */
function admitted(gate: Gate, request: { host: string; path: string; role: Role }): number {
  for (let count = 0; count < 12; count += 1) {
    try {
      const grant = gate.enter({ ...request, maxWaitMs: 0, stamp: "granted" });
      assert.ok(!(grant instanceof Promise));
      grant.release();
    } catch (error) {
      assert.ok(error instanceof RejectedError, String(error));
      return count;
    }
  }
  return 12;
}

interface Drawn {
  readonly policy: LoadedPolicy;
  readonly limits: Document;
  readonly breakers: BreakerDocument;
  /** The sources of keys that an override has set. */
  readonly sources: ReadonlyMap<string, string>;
}

function checkUrl({ policy, limits, breakers, sources }: Drawn, at: Url, role: Role): void {
  const expected = expectedPolicy(limits, breakers, at, role);
  const text = `https://${at.host}${at.port === 443 ? "" : `:${at.port}`}${at.path}`;
  const host = new HostNames(policy).of(new URL(text).origin);
  assert.equal(host, expected.host, "the name of the host");
  const about = `${text} ${role}`;

  // explain
  const explained = explainPolicy(policy, host, role, at.path);
  const decider = explained.find(({ field }) => field === "rates")?.sources.at(-1);
  const source = sources.get(expected.ratesPath) ?? "policy.ratelimits";
  assert.deepEqual([decider?.path, decider?.where], [expected.ratesPath, source], `${about}: source`);
  const values = new Map(explained.map(value => [value.field, value.value]));
  assert.equal([values.get("rates")].flat()[0], expected.rates, `${about}: explain`);
  assert.equal(values.get("max_delay_ms"), expected.maxDelayMs, `${about}: explain`);
  assert.equal(values.get("mode"), expected.mode, `${about}: explain`);
  assert.equal(values.get("breaker.fail_max"), expected.failMax, `${about}: explain`);
  assert.equal(values.get("breaker.reset_timeout_s"), expected.resetS, `${about}: explain`);
  const totals = [...values].filter(([field]) => field.endsWith("total.rates")).map(([, value]) => value);
  assert.deepEqual(totals.toSorted(), expected.totals.toSorted(), `${about}: explain`);

  // policyFor, show and why
  const row = hostPolicyRows(policy, policyTarget(policy, new URL(text))).find(found => found.role === role);
  const rowFacts = [row?.rates, row?.maxDelayMs, row?.mode, row?.failMax, row?.resetS];
  const rates = `${limitOf(expected.rates)}/SECOND`;
  assert.deepEqual(
    rowFacts,
    [rates, expected.maxDelayMs, expected.mode, expected.failMax, expected.resetS],
    `${about}: policyFor`,
  );
  const facts = policyFacts(policy, new URL(text), role);
  assert.equal(facts.route.roleBudget.labels.join(), rates, `${about}: why`);
  assert.equal(facts.breakers.circuit, expected.circuit, `${about}: why`);
  assert.equal(facts.route.roleBudget.isShadow, expected.mode === "shadow", `${about}: why`);
  const shown = policyRows(policy).filter(found => found.host === facts.route.name && found.role === role);
  if (shown.length > 0) assert.equal(shown[0]?.rates, rates, `${about}: show`);

  // The limiter, driven
  const gate = new Gate(policy.ratelimits.resolved, new FakeTime());
  const tightest = Math.min(...[expected.rates, ...expected.totals].map(limitOf));
  assert.equal(admitted(gate, { host, path: at.path, role }), expected.mode === "shadow" ? 12 : tightest, about);

  // The breakers, driven
  const time = new FakeTime();
  const registry = new BreakerRegistry({}, { time, random: () => 0 });
  breakersOf(registry).reload(policy.breakers.resolved);
  const call = { host, path: at.path, role };
  for (let failure = 0; failure < expected.failMax; failure += 1) {
    const permit = registry.tryAllow(call);
    assert.ok(permit.isAllowed, `${about}: denied after ${failure} of ${expected.failMax} failures`);
    permit.report({ outcome: outcomeOfResponse({ status: 500 }), status: 500 });
  }
  const denial = registry.check(call);
  assert.deepEqual([denial?.host, denial?.retryAfterMs], [expected.circuit, expected.resetS * 1000], about);
}

test("explain, show, policyFor, why and the driven limiter and breakers agree, for random policies and URLs", async () => {
  let cases = 0;
  await fc.assert(
    fc.asyncProperty(
      limitsDocument,
      breakersDocument,
      fc.array(override, { maxLength: 3 }),
      fc.array(fc.tuple(url, roleName), { minLength: 20, maxLength: 20 }),
      async (limits, breakers, overrides, urls) => {
        let merged = limits;
        const applied = overrides
          .toSorted((a, b) => Number(a.isFlag) - Number(b.isFlag))
          .filter(change => {
            const next = withOverride(merged, change);
            merged = next ?? merged;
            return next !== undefined;
          });
        const texts = (isFlag: boolean) =>
          applied
            .filter(change => change.isFlag === isFlag)
            .map(({ target, role, limit }) => `${target}:${role}=rates:${limit}/s`);
        const builtIn = { metadata: { rates: "10/s" }, landing: { rates: "5/s" }, artifact: { rates: "2/s" } };
        const defaults = Object.fromEntries(ROLES.map(role => [role, { ...builtIn[role], ...limits.defaults[role] }]));
        const policy = await loadPolicy({
          ratelimits: { ...limits, defaults, extends: "none" } as RatelimitsOptions,
          breakers: {
            ...breakers,
            advanced: { rolling_window: { enabled: false } },
            extends: "none",
          } as BreakersOptions,
          env: { DOCSTOKG_RLIMITS: texts(false).join(";") },
          overrides: { rate: texts(true) },
        });
        const sources = new Map(applied.map(change => [pathOf(change), change.isFlag ? "--rate" : "DOCSTOKG_RLIMITS"]));
        for (const [at, role] of urls) checkUrl({ policy, limits: merged, breakers, sources }, at, role);
        cases += urls.length;
      },
    ),
    { numRuns: 1000 },
  );
  assert.ok(cases >= 20_000);
});
