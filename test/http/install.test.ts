import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { resolve } from "node:path";
import { test } from "node:test";
import { pathToFileURL } from "node:url";
import { collectOutput } from "../process-output.ts";
import { serve } from "./kit.ts";

for (const first of ["node:http", "undici"]) {
  test(`an installed hub gets every fetch, whether Node's undici or the package was loaded first (${first})`, async t => {
    const server = await serve(t, (_, response) => response.end("ok"));
    const source = pathToFileURL(resolve(import.meta.dirname, "../../src/http/create-hub.ts")).href;
    const undici = import.meta.resolve("undici");
    const code = `
      await import(${JSON.stringify(first === "undici" ? undici : first)});
      if (${first === "node:http"}) await (await fetch(${JSON.stringify(server.origin)})).text();
      const { createHub } = await import(${JSON.stringify(source)});
      const { fetch: ours, request } = await import(${JSON.stringify(undici)});
      const hub = await createHub({ env: {}, cache: false });
      let calls = 0;
      hub.listen(({ event_type }) => { if (event_type === "http_request") calls += 1; });
      const uninstall = hub.install();
      const all = async () => {
        await (await fetch(${JSON.stringify(server.origin)})).text();
        await (await ours(${JSON.stringify(server.origin)})).text();
        await (await request(${JSON.stringify(server.origin)})).body.text();
      };
      await all();
      uninstall();
      await all();
      await hub.close();
      console.log(calls);`;
    const child = spawn(process.execPath, ["--input-type=module", "--eval", code], {
      stdio: ["ignore", "pipe", "inherit"],
    });
    const { stdout } = await collectOutput(child).ended;
    assert.equal(stdout, "3\n");
  });
}
