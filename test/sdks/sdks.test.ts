import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { readFileSync } from "node:fs";
import { basename, resolve } from "node:path";
import { suite, test } from "node:test";
import { type Handler, serve } from "../http/kit.ts";
import { installPackages } from "../install-packages.ts";

/** Runs the recipes of docs/guides/sdks.md with the SDKs themselves. The package must be built. */
const folder = import.meta.dirname;
const guide = readFileSync(resolve(folder, "../../docs/guides/sdks.md"), "utf8");
const recipes = Array.from(guide.matchAll(/^## (.+?)\n(?:(?!^## ).*\n)*?```js\n([\s\S]*?)^```$/gm), match => ({
  name: match[1] ?? "",
  code: match[2] ?? "",
}));

installPackages(folder);

/** The last part of the path, as a model of OpenAI and Anthropic, a user of GitHub and an object of S3. */
const answer: Handler = (request, response) => {
  const id = basename(new URL(request.url ?? "/", "http://localhost").pathname);
  if (request.url?.startsWith("/papers/")) response.setHeader("content-type", "text/plain").end(id);
  else response.setHeader("content-type", "application/json").end(JSON.stringify({ id }));
};

test("the guide has a recipe for each SDK", () => {
  assert.deepEqual(
    recipes.map(({ name }) => name),
    ["OpenAI", "Anthropic", "Octokit", "AWS SDK"],
  );
});

suite("with one request per second, and calls that may not wait", { concurrency: true }, () => {
  for (const { name, code } of recipes) {
    test(`${name}: a refused call is repeated after the wait that the refusal names, and both succeed`, async t => {
      const server = await serve(t, answer);
      const { stdout, stderr } = await run(code, server.origin, "1/SECOND");
      assert.equal(stdout, "one\ntwo\n", stderr);
      assert.equal(server.requests.length, 2);
    });
  }

  for (const [name, call] of [
    ["OpenAI", "client.models.retrieve(id, { maxRetries: 0 })"],
    ["Anthropic", "client.models.retrieve(id, {}, { maxRetries: 0 })"],
  ] as const) {
    test(`${name}: an error that is not repeated names the host, the limit and the next slot`, async t => {
      const server = await serve(t, answer);
      const recipe = recipes.find(recipe => recipe.name === name)?.code ?? "";
      const failing = recipe.replace("client.models.retrieve(id)", call);
      const { stdout, stderr } = await run(failing, server.origin, "1/HOUR");
      assert.equal(stdout, "one\n");
      assert.match(stderr, /429 rate limit 1\/HOUR of 127\.0\.0\.1 \(metadata\) reached: next slot in /);
      assert.equal(server.requests.length, 1);
    });
  }
});

function run(
  code: string,
  origin: string,
  rate: string,
): Promise<{ readonly stdout: string; readonly stderr: string }> {
  const env = {
    BASE_URL: origin,
    API_KEY: "test",
    DOCSTOKG_RLIMITS: `127.0.0.1:metadata=rates:${rate},max_delay_ms:0`,
  };
  return new Promise(done => {
    execFile(process.execPath, ["--input-type=module", "--eval", code], { cwd: folder, env }, (_, stdout, stderr) =>
      done({ stdout, stderr }),
    );
  });
}
