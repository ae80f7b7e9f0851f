import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { Gate } from "../gate/gate.ts";
import { HostNames } from "../http/host-names.ts";
import { FakeTime } from "../testing/fake-time.ts";
import { type LoadedPolicy, loadPolicy, type PolicySources } from "./load.ts";
import { hostPolicyRows } from "./policy-row.ts";
import type { RatelimitsOptions } from "./ratelimit-options.ts";
import type { Role } from "./roles.ts";

const alone = { extends: "none" } as const;

/** Requests that the limits admit at one instant. */
function sendable(
  { ratelimits }: LoadedPolicy,
  requests: readonly {
    readonly host: string;
    readonly path?: string;
    readonly service?: string;
    readonly role?: Role;
  }[],
): number {
  const gate = new Gate(ratelimits.resolved, new FakeTime());
  return requests.filter(request => gate.tryEnter({ role: "metadata", stamp: "granted", ...request }) !== undefined)
    .length;
}

const times = <Item>(count: number, item: Item) => Array.from({ length: count }, () => item);

describe("a host that is named with a port", () => {
  const inherits: readonly [string, PolicySources][] = [
    ["by breakers of the environment", { env: { DOCSTOKG_BREAKERS: "zenodo.org:80=fail_max:3" } }],
    ["by an empty entry", { ratelimits: { hosts: { "zenodo.org:80": {} } } }],
    ["by an entry of another role", { ratelimits: { hosts: { "zenodo.org:80": { artifact: { max_delay_ms: 9 } } } } }],
  ];
  for (const [how, sources] of inherits) {
    test(`${how} keeps the limits of the host`, async () => {
      const policy = await loadPolicy(sources);
      const host = new HostNames(policy).of("http://zenodo.org");
      assert.equal(host, "zenodo.org:80");
      assert.equal(sendable(policy, times(10, { host })), 2);
      const [row] = hostPolicyRows(policy, { host });
      assert.equal(row?.rates, "2/5SECOND");
    });
  }

  test("shares the total of the host, and its role budget unless it has its own", async () => {
    const budget = { guard_ms: 0, rates: "3/s" };
    const ratelimits: RatelimitsOptions = {
      ...alone,
      hosts: {
        "a.example": { total: { ...budget, rates: "5/s" }, metadata: budget },
        "a.example:8080": { landing: { max_delay_ms: 1 } },
        "a.example:9090": { metadata: budget },
      },
    };
    const policy = await loadPolicy({ ratelimits });
    const calls = (...ports: readonly string[]) => ports.flatMap(port => times(9, { host: `a.example${port}` }));
    assert.equal(sendable(policy, calls("", ":8080", ":7070")), 3);
    assert.equal(sendable(policy, calls("", ":9090")), 5);
  });
});

describe("the members of a shipped service", () => {
  const arxiv = ["export.arxiv.org", "arxiv.org", "www.arxiv.org"];

  test("stay when the user adds a member, which shares their budget", async () => {
    const services = { arxiv: { members: ["mirror.example.org"] } };
    for (const ratelimits of [{ services }, { groups: services }]) {
      const policy = await loadPolicy({ ratelimits });
      assert.equal(
        sendable(
          policy,
          [...arxiv, "mirror.example.org"].map(host => ({ host })),
        ),
        1,
      );
    }
  });

  test("are dropped only by an explicit replacement, in an object or with !replace in YAML", async () => {
    const services = { arxiv: { members: { replace: ["mirror.example.org"] } } };
    const policy = await loadPolicy({ ratelimits: { services } });
    assert.equal(
      sendable(
        policy,
        arxiv.map(host => ({ host })),
      ),
      3,
    );
    assert.deepEqual(policy.ratelimits.options.services?.["arxiv"]?.members, ["mirror.example.org"]);
  });
});

describe("a service that a call names", () => {
  const service = "mine";
  const fast = { guard_ms: 0, rates: "50/s" };
  const perHost = { services: { [service]: { per_host: true, total: fast, metadata: fast } } };

  test("with per_host keeps the limits of the host's path: CDX stays at 1/3SECOND", async () => {
    const policy = await loadPolicy({ ratelimits: perHost });
    const cdx = { host: "web.archive.org", path: "/cdx/search", service };
    assert.equal(sendable(policy, times(3, cdx)), 1);
    assert.equal(sendable(policy, [cdx, { ...cdx, service: undefined as unknown as string }, cdx]), 1);
  });

  test("with per_host keeps the limits of the role: an unlisted host stays at 10/SECOND", async () => {
    const policy = await loadPolicy({ ratelimits: perHost });
    assert.equal(sendable(policy, times(60, { host: "unlisted.example", service })), 10);
  });

  test("without per_host replaces the defaults, and never the limits of a host that the policy lists", async () => {
    const ratelimits: RatelimitsOptions = {
      services: { [service]: { members: ["mine.example"], metadata: fast } },
    };
    const policy = await loadPolicy({ ratelimits });
    assert.equal(sendable(policy, times(60, { host: "unlisted.example", service })), 50);
    assert.equal(sendable(policy, times(60, { host: "api.crossref.org", service })), 1);
    assert.equal(sendable(policy, times(9, { host: "export.arxiv.org", service })), 1);
  });
});

test("hosts that belong to a shipped service share its budget, in every spelling of host and path", async () => {
  const policy = await loadPolicy();
  const keyOf = (url: string) => {
    const { host, pathname } = new URL(url);
    return policy.ratelimits.resolved.route(host, "metadata", pathname).name;
  };
  for (const [url, key] of [
    ["https://univ-rennes.hal.science/hal-1", "service hal"],
    ["https://theses.hal.science/tel-1/document", "service hal"],
    ["https://hal.science/hal-1", "service hal"],
    ["https://hal.archives-ouvertes.fr/hal-1", "service hal"],
    ["https://s3-eu-west-1.amazonaws.com/pfigshare-u-files/1/x.pdf", "service figshare-files"],
    ["https://pubmed.ncbi.nlm.nih.gov/1/", "service ncbi"],
    ["https://api.github.com/repos/x/y", "api.github.com"],
    ["https://www.europepmc.org/article/MED/1", "service europepmc"],
    ["https://web.archive.org//cdx/search", "service wayback-cdx"],
    ["https://web.archive.org/%63dx/search", "service wayback-cdx"],
    ["https://web.archive.org/CDX/search", "service wayback-cdx"],
  ] as const)
    assert.equal(keyOf(url), key, url);
});

test("of many members the invalid one is named, by its place in the list", async () => {
  const members = ["a.example", "b.example", "bad host", "c.example"];
  for (const [given, path] of [
    [members, "services.mine.members.2"],
    [{ replace: members }, "services.mine.members.replace.2"],
  ] as const)
    await assert.rejects(loadPolicy({ ratelimits: { services: { mine: { members: given } } } }), ({ message }: Error) =>
      message.startsWith(`policy.ratelimits: ${path}: "bad host" is not a host; expected a name`),
    );
});
