/** A Redis server with TLS. */
import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { join, resolve } from "node:path";
import { type TestContext, test } from "node:test";
import { promisify } from "node:util";
import { RedisKeys } from "../../src/stores/redis/redis-keys.ts";
import { RedisStore } from "../../src/stores/redis/redis-store.ts";
import { RedisServer, whyNoRedis } from "./redis-server.ts";
import { kindOf, one } from "./requests.ts";

const skip = whyNoRedis();
const PATIENT_MS = 600_000;
const tls = resolve(import.meta.dirname, "../fixtures/tls");
const [cert, key] = [join(tls, "cert.pem"), join(tls, "key.pem")];

async function startTlsServer(t: TestContext, asksClient: "yes" | "no") {
  const port = await RedisServer.freePort();
  const server = await RedisServer.start(
    ...["--tls-port", String(port), "--tls-auth-clients", asksClient],
    ...["--tls-cert-file", cert, "--tls-key-file", key, "--tls-ca-cert-file", cert],
  );
  t.after(() => server.stop());
  return { server, url: `rediss://localhost:${port}` };
}

test("a rediss:// URL with a certificate authority of Node connects to a TLS server", { skip }, async t => {
  const { server, url } = await startTlsServer(t, "no");
  const script = `
    import { RedisStore } from ${JSON.stringify(resolve(import.meta.dirname, "../../src/stores/redis/redis-store.ts"))};
    const store = await RedisStore.open(${JSON.stringify(url)}, { timeoutMs: ${PATIENT_MS} });
    const request = { claims: [{ key: "k", windows: [{ limit: 1, windowUs: 1e6, spanUs: 1e6 }], spacingUs: 0 }], least: 1, most: 1 };
    console.log((await store.exchange([], [request]))[0].kind);
    await store.close();
  `;
  const env = { ...process.env, NODE_EXTRA_CA_CERTS: cert };
  const run = promisify(execFile);
  const { stdout } = await run(process.execPath, ["--input-type=module", "--eval", script], { env });
  assert.equal(stdout.trim(), "granted");
  assert.equal(server.cli("exists", new RedisKeys("docstokg", false).keyOf("k", "")), "1");
});

test("the URL names the certificate authority and the client certificate", { skip }, async t => {
  const { url } = await startTlsServer(t, "yes");
  const store = await RedisStore.open(`${url}?ca=${cert}&cert=${cert}&key=${key}`, { timeoutMs: PATIENT_MS });
  t.after(() => store.close());
  assert.equal(await kindOf(store, one("k", 1)), "granted");
});

test("opening a store fails with an untrusted certificate and with a missing file", {
  skip,
}, async t => {
  const { url } = await startTlsServer(t, "no");
  await assert.rejects(
    RedisStore.open(url, { timeoutMs: PATIENT_MS }),
    /StoreError: redis at localhost:.*self-signed certificate/,
  );
  await assert.rejects(
    RedisStore.open(`${url}?ca=/nowhere/ca.pem`, { timeoutMs: PATIENT_MS }),
    /StoreError: cannot read the file of the Redis parameter "ca": ENOENT/,
  );
});
