import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { createHash } from "node:crypto";
import { once } from "node:events";
import { resolve } from "node:path";
import { type TestContext, test } from "node:test";
import { connect, type TLSSocket } from "node:tls";
import { internetFor, unlimitedClient } from "../../../test/testing/internet-kit.ts";
import { createHub } from "../../http/create-hub.ts";
import type { Hub } from "../../http/hub.ts";
import type { ScriptStep } from "./script-step.ts";
import { type Internet, startInternet } from "./start-internet.ts";

async function hubOn(t: TestContext, { network }: Internet): Promise<Hub> {
  const hub = await createHub({ network, env: {}, mailto: "me@example.org", cache: false, retry: false });
  t.after(() => hub.destroy());
  return hub;
}

async function handshake({ network }: Internet, servername: string, ca?: string): Promise<TLSSocket> {
  const port = Number(network.connectTo[0]?.split(":").at(-1));
  const socket = connect({ port, host: "127.0.0.1", servername, ...(ca === undefined ? {} : { ca }) });
  await once(socket, "secureConnect");
  return socket;
}

test("the certificate is valid for every simulated host with the authority trusted, and for no other host", async t => {
  const internet = await internetFor(t);
  const { ca } = internet.network.tls;
  for (const host of internet.hosts) {
    const socket = await handshake(internet, host, ca);
    assert.ok(socket.authorized, host);
    socket.destroy();
  }
  await assert.rejects(handshake(internet, "elsewhere.example", ca), { code: "ERR_TLS_CERT_ALTNAME_INVALID" });
  await assert.rejects(handshake(internet, "doi.org"), /certificate/);
});

test("the hub fetches record, page and file of a work over TLS", async t => {
  const internet = await internetFor(t);
  const hub = await hubOn(t, internet);
  const work = internet.works.find(({ scenario }) => scenario === "redirect-chain") ?? assert.fail();
  const record = await hub.fetch(`https://api.crossref.org/works/${work.ids.doi}`);
  assert.equal(record.headers.get("x-api-pool"), "polite-single");
  const { message } = (await record.json()) as { message: { link: { URL: string }[] } };
  const page = await hub.fetch(`https://doi.org/${work.ids.doi}`, { role: "landing" });
  assert.equal(page.url, work.landing);
  await page.text();
  const file = await hub.fetch(message.link[0]?.URL ?? "", { role: "artifact" });
  const bytes = Buffer.from(await file.arrayBuffer());
  assert.equal(createHash("sha256").update(bytes).digest("hex"), work.file.sha256);
  const { rejected, faults, hosts } = await internet.ledger();
  assert.deepEqual({ rejected, faults }, { rejected: 0, faults: [] });
  assert.deepEqual(hosts["links.papermill.example"]?.statuses, { 302: 1, 307: 1 });
});

test("a limit is enforced exactly over real sockets, and the ledger shows it", async t => {
  const internet = await internetFor(t);
  const ask = unlimitedClient(t, internet);
  const statuses: number[] = [];
  const url = "https://api.semanticscholar.org/graph/v1/paper/DOI:10.5555/x";
  for (let call = 0; call < 103; call += 1) statuses.push((await ask(url)).status);
  assert.deepEqual(statuses, [...Array(100).fill(404), 429, 429, 429]);
  const { hosts, rejected, served } = await internet.ledger();
  assert.deepEqual({ rejected, served }, { rejected: 3, served: 100 });
  const host = hosts["api.semanticscholar.org"] ?? assert.fail();
  assert.deepEqual(host.statuses, { 404: 100, 429: 3 });
  assert.deepEqual(host.limits[0]?.windows, [{ rate: "100/5MINUTE", limit: 100, windowMs: 300_000, most: 103 }]);
  assert.equal(host.arrivalsMs.length, 103);
  assert.deepEqual([host.arrivalsMs[0], host.arrivalsMs.at(-1)], [host.firstMs, host.lastMs]);
});

test("with a concurrency limit of one, a second concurrent request is rejected, and a later one is admitted", async t => {
  const internet = await internetFor(t, {
    script: [{ host: "api.crossref.org", effect: "slow", delayMs: 50, times: 1 }],
  });
  const ask = unlimitedClient(t, internet);
  const url = "https://api.crossref.org/works/10.5555/x";
  const both = await Promise.all([ask(url), ask(url)]);
  assert.deepEqual(both.map(({ status }) => status).sort(), [404, 429]);
  assert.equal((await ask(url)).status, 404);
});

test("a step can be started and stopped while the internet runs", async t => {
  const internet = await internetFor(t);
  const ask = unlimitedClient(t, internet);
  const url = "https://doaj.org/elsewhere";
  const status = async () => (await ask(url)).status;
  assert.equal(await status(), 404);
  const outage = await internet.start({ host: "doaj.org", effect: "outage", status: 502 });
  assert.equal(await status(), 502);
  await outage.stop();
  assert.equal(await status(), 404);
  const reset = await internet.start({ host: "doaj.org", effect: "outage", how: "reset" });
  await assert.rejects(ask(url));
  await reset.stop();
  await internet.start({ host: "doaj.org", effect: "throttle", retryAfterS: 3, times: 1 });
  const { status: throttled, headers } = await ask(url);
  assert.deepEqual([throttled, headers["retry-after"]], [429, "3"]);
  // Refusals by the script do not count as rejected by a limit.
  assert.equal((await internet.ledger()).rejected, 0);
});

test("a slow step delays the response and limits its speed", async t => {
  const internet = await internetFor(t);
  const ask = unlimitedClient(t, internet);
  const { copies, file } = internet.works.find(({ scenario }) => scenario === "publisher") ?? assert.fail();
  const url = copies[0]?.url ?? "";
  await internet.start({ host: new URL(url).host, effect: "slow", delayMs: 50, bytesPerSecond: file.bytes * 4 });
  const startedMs = performance.now();
  assert.equal((await ask(url)).bytes.length, file.bytes);
  // Without the last chunk, which is not followed by a pause.
  assert.ok(performance.now() - startedMs >= 50 + 100);
});

test("a silent host never responds, and the internet can still be closed", async t => {
  const internet = await internetFor(t, { script: [{ host: "doi.org", effect: "outage", how: "silence" }] });
  const hub = await hubOn(t, internet);
  await assert.rejects(hub.fetch("https://doi.org/10.5555/x", { signal: AbortSignal.timeout(50) }), {
    name: "TimeoutError",
  });
  const waiting = assert.rejects(hub.fetch("https://doi.org/10.5555/x"));
  await internet.close();
  await waiting;
});

test("limits halved during a run are announced and enforced", async t => {
  const internet = await internetFor(t);
  const ask = unlimitedClient(t, internet);
  const announced = async () => (await ask("https://api.core.ac.uk/v3/x")).headers["x-ratelimit-limit"];
  assert.equal(await announced(), "5");
  await internet.start({ host: "api.core.ac.uk", effect: "limits", factor: 0.5 });
  assert.equal(await announced(), "2");
  assert.equal((await ask("https://api.core.ac.uk/v3/x")).status, 429);
});

test("a truncated file fails over http and https, and is complete on the second request", async t => {
  const internet = await internetFor(t);
  const ask = unlimitedClient(t, internet);
  const { copies, file } = internet.works.find(({ scenario }) => scenario === "truncated-once") ?? assert.fail();
  await assert.rejects(ask(copies[0]?.url ?? ""));
  assert.equal((await ask(copies[0]?.url ?? "")).bytes.length, file.bytes);
  const alder = internet.ontologies.find(({ id }) => id === "alder") ?? assert.fail();
  const plain = alder.copies[0]?.hops.at(-1) ?? "";
  assert.match(plain, /^http:/);
  await assert.rejects(ask(plain));
  assert.equal((await ask(plain)).bytes.length, alder.copies[0]?.bytes);
});

test("files have strong validators: a conditional request gets 304, a range request 206", async t => {
  const internet = await internetFor(t);
  const ask = unlimitedClient(t, internet);
  const { copies, file } = internet.works.find(({ scenario }) => scenario === "pmc") ?? assert.fail();
  const url = copies[0]?.url ?? "";
  const { headers, bytes } = await ask(url);
  const etag = String(headers["etag"]);
  assert.equal(etag, `"${file.md5}"`);
  assert.equal((await ask(url, { headers: { "if-none-match": etag } })).status, 304);
  assert.equal((await ask(url, { headers: { "if-modified-since": String(headers["last-modified"]) } })).status, 304);
  const rest = await ask(url, { headers: { range: "bytes=1000-", "if-range": etag } });
  assert.deepEqual([rest.status, rest.headers["content-range"]], [206, `bytes 1000-${file.bytes - 1}/${file.bytes}`]);
  assert.deepEqual(rest.bytes, bytes.subarray(1000));
  assert.deepEqual((await ask(url, { headers: { range: "bytes=-9" } })).bytes, bytes.subarray(-9));
  assert.equal((await ask(url, { headers: { range: "bytes=1000-", "if-range": '"other"' } })).status, 200);
  assert.equal((await ask(url, { headers: { range: `bytes=${file.bytes}-` } })).status, 416);
  const head = await ask(url, { method: "HEAD" });
  assert.deepEqual([head.headers["content-length"], head.bytes.length], [String(file.bytes), 0]);
});

test("a large ontology is streamed and can be resumed at any offset", async t => {
  const internet = await internetFor(t, { bigOntologyBytes: 60_000_000 });
  const ask = unlimitedClient(t, internet);
  const titan = internet.ontologies.find(({ id }) => id === "titan") ?? assert.fail();
  const { url, bytes } = titan.copies[0] ?? assert.fail();
  assert.ok(bytes > 59_999_000 && bytes <= 60_000_000);
  const tail = await ask(url, { headers: { range: `bytes=${bytes - 11}-` } });
  assert.equal(tail.bytes.toString(), "</rdf:RDF>\n");
  assert.equal((await ask(url)).bytes.length, bytes);
});

test("invalid options and steps are refused by name", async () => {
  await assert.rejects(startInternet({ works: -1 }), /works is -1; expected a whole number from 0/);
  await assert.rejects(startInternet({ seed: 1.5 }), /seed is 1.5;/);
  const flood = { host: "doi.org", effect: "flood" } as unknown as ScriptStep;
  await assert.rejects(startInternet({ script: [flood] }), /unknown effect "flood"; expected one of outage/);
  await assert.rejects(startInternet({ script: [{ ...flood, host: "" }] }), /has no host; expected a host/);
});

test("a process that has closed the internet ends by itself", () => {
  const program = `
    import { startInternet } from "./src/testing.ts";
    const internet = await startInternet({ works: 3 });
    const port = internet.network.connectTo[1].split(":").at(-1);
    await fetch("http://127.0.0.1:" + port + "/");
    await internet.close();
    console.log(process.getActiveResourcesInfo().filter(name => /Worker|MessagePort|Server/.test(name)).length);`;
  const args = ["--input-type=module", "--disable-warning=ExperimentalWarning", "--eval", program];
  const root = resolve(import.meta.dirname, "../../..");
  const { status, stdout, stderr } = spawnSync(process.execPath, args, { cwd: root, encoding: "utf8" });
  assert.deepEqual({ status, stdout, stderr }, { status: 0, stdout: "0\n", stderr: "" });
});
