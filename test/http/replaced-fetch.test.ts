import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { resolve } from "node:path";
import { test } from "node:test";
import { pathToFileURL } from "node:url";
import { collectOutput } from "../process-output.ts";
import { serve } from "./kit.ts";

for (const isInstalled of [false, true])
  test(`a global fetch that was replaced before docstokg was loaded ${isInstalled ? "goes through the installed hub" : "is reported, once for each host"}`, async t => {
    const server = await serve(t, (_, response) => response.end("ok"));
    const source = pathToFileURL(resolve(import.meta.dirname, "../../src/http/create-hub.ts")).href;
    // Such as node-fetch: it knows no dispatchers.
    const code = `
      import http from "node:http";
      globalThis.fetch = url => new Promise(done => http.get(String(url), response => done(new Response(response))));
      const warnings = [];
      process.on("warning", ({ message }) => warnings.push(message));
      const { createHub } = await import(${JSON.stringify(source)});
      const hub = await createHub({ env: {}, cache: false });
      const hosts = [];
      hub.listen(({ event_type, host, client }) => { if (event_type === "bypassed") hosts.push([host, client]); });
      if (${isInstalled}) hub.install();
      for (const host of ["127.0.0.1", "127.0.0.1", "localhost"])
        await (await hub.fetch("http://" + host + ":${server.port}/")).text();
      await hub.fetch("data:text/plain,x").catch(() => undefined);
      await new Promise(setImmediate);
      await hub.close();
      console.log(JSON.stringify({ hosts, warnings }));`;
    const child = spawn(process.execPath, ["--input-type=module", "--eval", code], {
      stdio: ["ignore", "pipe", "inherit"],
    });
    const { hosts, warnings } = JSON.parse((await collectOutput(child).ended).stdout);
    if (isInstalled) {
      assert.deepEqual({ hosts, warnings }, { hosts: [], warnings: [] });
      return;
    }
    assert.deepEqual(hosts, [
      ["127.0.0.1", "fetch"],
      ["localhost", "fetch"],
    ]);
    assert.equal(warnings.length, 1);
    assert.match(warnings[0], /^hub\.fetch: the response of 127\.0\.0\.1 did not come through the hub/);
  });
