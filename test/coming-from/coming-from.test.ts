import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { readFileSync, rmSync, writeFileSync } from "node:fs";
import { join, resolve } from "node:path";
import { describe, test } from "node:test";
import { serve } from "../http/kit.ts";
import { installPackages } from "../install-packages.ts";
import { RedisServer, whyNoRedis } from "../stores/redis-server.ts";

/**
 * The code of other libraries in docs/coming-from.md runs with the versions of the package.json beside this file, against
 * a server of the test. Python is not run: pip cannot install pybreaker everywhere.
 */
const folder = import.meta.dirname;
const root = resolve(folder, "../..");
const page = readFileSync(join(root, "docs/coming-from.md"), "utf8");
const blocks = page.split(/^## /m).flatMap(section => {
  const [title = ""] = section.split("\n");
  return Array.from(section.matchAll(/^```js\n(.*?)^```$/gms), ([, code = ""], index) => ({ title, code, index }));
});

/** What the page takes for granted, by the title of its section. */
const GIVEN: Readonly<Record<string, string>> = {
  bottleneck: 'const call = async () => "result";',
  "rate-limiter-flexible": 'import Redis from "ioredis";\nconst redis = new Redis(REDIS_PORT);',
};

test("each library that is written in JavaScript has code that runs", () => {
  assert.deepEqual(
    [...new Set(blocks.map(({ title }) => title))],
    [
      ...["bottleneck", "p-throttle", "p-queue", "rate-limiter-flexible", "opossum", "cockatiel"],
      "Retries of got, ky and axios",
    ],
  );
});

describe("the code of other libraries runs as it is shown", { skip: whyNoRedis() }, () => {
  installPackages(folder);
  for (const { title, code, index } of blocks) {
    test(`${title}, block ${index + 1}`, async t => {
      const redis = await RedisServer.start();
      t.after(() => redis.stop());
      const server = await serve(t, (_, response) => void response.end("[]"));
      const program = `${index === 0 ? (GIVEN[title] ?? "") : ""}\n${code}\nprocess.exit();\n`
        .replaceAll("https://api.example.org", server.origin)
        .replaceAll("REDIS_PORT", String(redis.port))
        .replaceAll("127.0.0.1:6379", `127.0.0.1:${redis.port}`)
        .replaceAll('from "docstokg"', `from ${JSON.stringify(join(root, "dist/index.js"))}`);
      const file = join(folder, `block-${blocks.findIndex(block => block.code === code)}.mjs`);
      writeFileSync(file, program);
      t.after(() => rmSync(file));
      const printed = await new Promise<string>(settle => {
        execFile(process.execPath, ["--trace-deprecation", file], (error, _, stderr) =>
          settle(error?.message ?? stderr),
        );
      });
      assert.equal(printed, "");
    });
  }
});
