/** Programs that esbuild has bundled into one file run in a folder without node_modules. */
import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdirSync, symlinkSync, writeFileSync } from "node:fs";
import { join, resolve } from "node:path";
import { test } from "node:test";
import { type BuildOptions, build } from "esbuild";
import { serve } from "./http/kit.ts";
import { temporaryFolder } from "./temporary-folder.ts";

const root = resolve(import.meta.dirname, "..");

/** As documented in docs/guides/hub.md: packages in CommonJS need `require` inside an ES module. */
const REQUIRE = 'import { createRequire } from "node:module"; const require = createRequire(import.meta.url);';

const FORMATS = {
  esm: { extension: "mjs", options: { format: "esm", banner: { js: REQUIRE } } },
  cjs: { extension: "cjs", options: { format: "cjs" } },
} as const satisfies Record<string, { extension: string; options: BuildOptions }>;

/** Bundles a program, runs it with the address of a server, and returns what it prints. */
async function runBundle(format: keyof typeof FORMATS, program: string, address: string) {
  const folder = temporaryFolder("bundle");
  const [sources, output] = [join(folder, "sources"), join(folder, "output")];
  mkdirSync(join(sources, "node_modules"), { recursive: true });
  symlinkSync(root, join(sources, "node_modules/docstokg"));
  symlinkSync(join(root, "node_modules/undici"), join(sources, "node_modules/undici"));
  const { extension, options } = FORMATS[format];
  const file = join(output, `program.${extension}`);
  const { warnings } = await build({
    stdin: { contents: program, resolveDir: sources },
    bundle: true,
    platform: "node",
    outfile: file,
    logLevel: "silent",
    ...options,
  });
  assert.deepEqual(warnings, []);
  writeFileSync(join(output, "limits.yaml"), "hosts:\n  a.example:\n    metadata: { rates: 1/HOUR }\n");
  const child = spawn(process.execPath, [file, address], { cwd: output, stdio: ["ignore", "pipe", "pipe"] });
  const printed: Record<"stdout" | "stderr", string> = { stdout: "", stderr: "" };
  for (const stream of ["stdout", "stderr"] as const) {
    child[stream].setEncoding("utf8").on("data", text => {
      printed[stream] += text;
    });
  }
  const [code] = await once(child, "close");
  assert.deepEqual({ code, stderr: printed.stderr }, { code: 0, stderr: "" });
  return printed.stdout;
}

/** The shipped policy, a policy file, a store in a file and a cache in a file are all needed. */
const HUB = `
  import { createHub, RateLimitExceeded } from "docstokg";
  import { RateLimiter } from "docstokg/limiter";
  async function main() {
    const limiter = new RateLimiter({ hosts: { "a.example": { metadata: { rates: "1/HOUR" } } } });
    limiter.tryAcquire({ host: "a.example" });
    await limiter.acquire({ host: "a.example", maxWaitMs: 0 }).catch(error => console.log(error instanceof RateLimitExceeded));
    const hub = await createHub({
      env: {}, policy: { ratelimits: "limits.yaml" }, store: "sqlite:store.sqlite", cache: "sqlite:cache.sqlite",
    });
    console.log(hub.policyFor("a.example").rates, hub.policyFor("api.crossref.org").rates !== hub.policyFor("b.example").rates);
    console.log(await (await hub.fetch(process.argv[2])).text());
    console.log(await (await hub.request(process.argv[2])).body.text());
    await hub.close();
  }
  main();
`;

for (const format of ["esm", "cjs"] as const) {
  test(`a program with a hub and a limiter that esbuild bundled as ${format} runs without node_modules`, async t => {
    const server = await serve(t, (_, response) => response.end("ok"));
    assert.equal(await runBundle(format, HUB, server.origin), "true\n1/HOUR true\nok\nok\n");
    assert.equal(server.requests.length, 2);
  });
}

test("a program with docstokg/register that esbuild bundled as an ES module sends through the hub", async t => {
  const server = await serve(t, (_, response) => response.end("ok"));
  const program = `
    import "docstokg/register";
    console.log(await (await fetch(process.argv[2])).text());
  `;
  assert.equal(await runBundle("esm", program, server.origin), "ok\n");
  assert.match(server.requests[0]?.headers["user-agent"] ?? "", /^docstokg\//);
});

test("a bundled program uses docstokg/testing, except the simulated internet", async () => {
  const program = `
    import { FakeTime, startStrictServer } from "docstokg/testing";
    const server = await startStrictServer({ rate: "1/SECOND" });
    console.log((await fetch(server.origin)).status, new FakeTime().monotonicUs() >= 0);
    await server.close();
  `;
  assert.equal(await runBundle("esm", program, ""), "200 true\n");
});

test("the stack of a request that bypasses the hub begins with the program, also when the hub is bundled", async t => {
  const server = await serve(t, (_, response) => response.end("ok"));
  const program = `
    import { createHub } from "docstokg";
    import { Client } from "undici";
    process.removeAllListeners("warning").once("warning", ({ detail }) => console.log(detail));
    const hub = await createHub({ env: {} });
    const uninstall = hub.install();
    const client = new Client(process.argv[2]);
    async function sendPastTheHub() {
      await (await client.request({ path: "/", method: "GET" })).body.text();
    }
    await sendPastTheHub();
    await client.close();
    uninstall();
    await hub.close();
  `;
  const stack = await runBundle("esm", program, server.origin);
  assert.match(stack, /sendPastTheHub/);
  assert.doesNotMatch(stack, /callerStack|onCreate|bypass-detector/);
});
