import assert from "node:assert/strict";
import { type ChildProcess, fork } from "node:child_process";
import { once } from "node:events";
import { join } from "node:path";
import { after, before, beforeEach, describe, test } from "node:test";
import { RedisServer, whyNoRedis } from "./redis-server.ts";
import { assertWithin } from "./suite.ts";

describe("processes on one redis server", { skip: whyNoRedis() }, () => {
  let server: RedisServer;
  const children: ChildProcess[] = [];

  before(async () => {
    server = await RedisServer.start();
  });
  beforeEach(() => server.cli("FLUSHALL"));
  after(async () => {
    for (const child of children) child.kill("SIGKILL");
    await server.stop();
  });

  /** Four processes that start at the same moment; when each of them sent. */
  async function four(task: string, ...args: readonly number[]): Promise<readonly (readonly number[])[]> {
    const started = Array.from({ length: 4 }, async () => {
      const file = join(import.meta.dirname, "redis-process.ts");
      const child = fork(file, [task, server.url, ...args.map(String)], {
        stdio: ["ignore", "inherit", "inherit", "ipc"],
      });
      children.push(child);
      await once(child, "message");
      return child;
    });
    const ready = await Promise.all(started);
    const reports = Promise.all(ready.map(child => once(child, "message")));
    for (const child of ready) child.send("go");
    const told = (await reports).map(([report]) => report);
    assert.ok(
      told.some(({ processes }) => processes === 4),
      "they know of each other",
    );
    return told.map(({ sentUs }) => sentUs);
  }

  test("four that try sixty times each get twenty a minute, and not one more", async () => {
    const sent = await four("tries", 20, 60_000, 60);
    assert.equal(sent.flat().length, 20);
  });

  test("four that send eight a second never exceed it in any second, lose little, and get about the same", async () => {
    const sent = await four("sends", 8, 1000, 6000);
    assertWithin(sent.flat(), 8, 1_000_000);
    assert.ok(sent.flat().length >= 8 * 5, `nothing is lost by it: ${sent.flat().length}`);
    // Whoever comes first, or goes last, is alone and takes what it wants: what counts is the time when all were there.
    const fromUs = Math.max(...sent.map(us => Math.min(...us)));
    const untilUs = Math.min(...sent.map(us => Math.max(...us)));
    const counts = sent.map(us => us.filter(stampUs => stampUs >= fromUs && stampUs <= untilUs).length);
    const mean = counts.reduce((sum, count) => sum + count, 0) / 4;
    assert.ok(Math.max(...counts) - Math.min(...counts) <= mean / 4, `fair: ${counts}`);
  });
});
