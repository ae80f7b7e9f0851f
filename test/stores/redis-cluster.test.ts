/** A Redis cluster, and a Redis server with TLS. */
import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { after, before, describe, type TestContext, test } from "node:test";
import { promisify } from "node:util";
import { RedisStore } from "../../src/stores/redis/redis-store.ts";
import { FakeTime } from "../../src/testing/fake-time.ts";
import { systemTime } from "../../src/time/system-time.ts";
import { recordContract } from "./record-contract.ts";
import { RedisServer, whyNoRedis } from "./redis-server.ts";
import { storeContract, type TestedStore } from "./store-contract.ts";

const SLOTS = [
  [0, 5460],
  [5461, 10_922],
  [10_923, 16_383],
] as const;

describe("a cluster of three servers", { skip: whyNoRedis() }, () => {
  let servers: readonly RedisServer[] = [];
  let folder = "";
  let stores = 0;

  before(async () => {
    folder = await mkdtemp(join(tmpdir(), "docstokg-cluster-"));
    servers = await Promise.all(
      SLOTS.map((_, index) =>
        RedisServer.start("--cluster-enabled", "yes", "--dir", folder, "--cluster-config-file", `nodes-${index}.conf`),
      ),
    );
    const [first] = servers;
    assert.ok(first !== undefined);
    for (const [index, server] of servers.entries()) {
      server.cli("cluster", "addslotsrange", ...(SLOTS[index] ?? []).map(String));
      server.cli("cluster", "set-config-epoch", String(index + 1));
      if (server !== first) server.cli("cluster", "meet", "127.0.0.1", String(first.port));
    }
    while (servers.some(server => !server.cli("cluster", "info").includes("cluster_state:ok")))
      await systemTime.sleep(50);
  });
  after(async () => {
    await Promise.all(servers.map(server => server.stop()));
    await rm(folder, { recursive: true, force: true });
  });

  async function tested(t: TestContext): Promise<TestedStore> {
    const time = new FakeTime();
    stores += 1;
    const prefix = `test${stores}`;
    const serverUs = () => time.machineUs();
    return {
      member: async () => {
        const url = servers[stores % servers.length]?.url ?? "";
        const store = await RedisStore.open(url, {
          prefix,
          time,
          cluster: true,
          trustMs: 0,
          timeoutMs: 600_000,
          serverUs,
        });
        t.after(() => store.close());
        return store;
      },
      advance: ms => time.advance(ms),
    };
  }
  storeContract("cluster", tested);
  recordContract("cluster", tested);
});

test("a rediss:// address is enough to connect to a TLS server", { skip: whyNoRedis() }, async t => {
  const tls = resolve(import.meta.dirname, "../fixtures/tls");
  const port = await RedisServer.freePort();
  const server = await RedisServer.start(
    ...["--tls-port", String(port), "--tls-auth-clients", "no"],
    ...["--tls-cert-file", join(tls, "cert.pem"), "--tls-key-file", join(tls, "key.pem")],
    ...["--tls-ca-cert-file", join(tls, "cert.pem")],
  );
  t.after(() => server.stop());
  const script = `
    import { RedisStore } from ${JSON.stringify(resolve(import.meta.dirname, "../../src/stores/redis/redis-store.ts"))};
    const store = await RedisStore.open("rediss://localhost:${port}");
    const request = { claims: [{ key: "k", windows: [{ limit: 1, windowUs: 1e6, spanUs: 1e6 }], spacingUs: 0 }], least: 1, most: 1 };
    console.log((await store.exchange([], [request]))[0].kind);
    await store.close();
  `;
  const env = { ...process.env, NODE_EXTRA_CA_CERTS: join(tls, "cert.pem") };
  const run = promisify(execFile);
  const { stdout } = await run(process.execPath, ["--input-type=module", "--eval", script], { env });
  assert.equal(stdout.trim(), "granted");
  assert.equal(server.cli("keys", "docstokg:k"), "docstokg:k");
});
