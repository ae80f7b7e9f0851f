import assert from "node:assert/strict";
import { Readable } from "node:stream";
import { type TestContext, test } from "node:test";
import { setImmediate } from "node:timers/promises";
import { databaseOf, pdf, workCalled } from "../../test/harvest/kit.ts";
import { temporaryFolder } from "../../test/temporary-folder.ts";
import type { Hub } from "../http/hub.ts";
import { FakeTime } from "../testing/fake-time.ts";
import { landingPage } from "./resolvers/landing-page.ts";
import type { Candidate, Resolver } from "./resolvers/resolver.ts";
import { openRun } from "./run.ts";

/** Bodies of 10 bytes per second, which do not end. */
class SlowBodies {
  readonly time = new FakeTime();
  /** Bodies that have not been dropped. */
  open = 0;

  body(): Readable {
    const body = new Readable({ read: () => undefined });
    const push = () => {
      body.push("          ");
      timer = this.time.setTimer(1000, push);
    };
    let timer = this.time.setTimer(1000, push);
    this.open += 1;
    return body.once("close", () => {
      this.open -= 1;
      timer.cancel();
    });
  }
}

interface FakeResponse {
  readonly statusCode: number;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: Readable;
}

/** Runs one work with the given candidates to its end. Returns its reason and the paths that were requested. */
async function outcomeWith(
  t: TestContext,
  candidates: readonly Candidate[],
  answer: (path: string, slow: SlowBodies) => FakeResponse,
): Promise<{ readonly reason: unknown; readonly paths: readonly string[]; readonly elapsedS: number }> {
  const slow = new SlowBodies();
  const { time } = slow;
  const folder = temporaryFolder("slow");
  const paths: string[] = [];
  const request = async (url: string | URL) => {
    const { pathname } = new URL(url);
    paths.push(pathname);
    await setImmediate();
    if (pathname === "/robots.txt") return { statusCode: 404, headers: {}, body: Readable.from([Buffer.from("no")]) };
    return answer(pathname, slow);
  };
  const index: Resolver = {
    name: "index",
    needs: [],
    requestFor: () => undefined,
    inferred: () => ({ kind: "found", candidates }),
    parse: () => ({ kind: "none", reason: "no-copy" }),
  };
  const run = await openRun({
    ...{ hub: { request } as unknown as Pick<Hub, "request">, time, folder, manifest: `${folder}/manifest.sqlite` },
    ...{ command: "test", order: () => [index], resolvers: [index, landingPage], random: () => 0.5 },
  });
  t.after(() => run.close("ended"));
  await run.addWorks([workCalled("a")]);
  run.pipeline.inputEnded();
  let isOver = false;
  const ended = run.pipeline.run().finally(() => {
    isOver = true;
  });
  while (!isOver) {
    await setImmediate();
    // Files are written in real time, which virtual time must not overtake.
    if (run.pipeline.inFlight > 0 && slow.open === 0) continue;
    const nextMs = time.nextTimerMs;
    if (nextMs !== undefined && !isOver) await time.advance(nextMs);
  }
  await ended;
  const row = databaseOf(run.manifest).prepare("SELECT reason FROM works").get();
  return {
    reason: row?.["reason"],
    paths: paths.filter(path => path !== "/robots.txt"),
    elapsedS: time.monotonicUs() / 1e6,
  };
}

const page = { url: "https://slow.example/page", kind: "landing" } as const;
const file = { url: "https://slow.example/file", kind: "pdf" } as const;
const html = { "content-type": "text/html" };

test("a page that is slower than the lowest speed is requested once", async t => {
  const result = await outcomeWith(t, [page], (_, slow) => ({ statusCode: 200, headers: html, body: slow.body() }));
  assert.deepEqual(result, { reason: "too-slow", paths: ["/page"], elapsedS: 30 });
});

test("a slow file without a strong validator is requested once, because it would begin again", async t => {
  const headers = { "content-type": "application/pdf" };
  const { reason, paths } = await outcomeWith(t, [file], (_, slow) => ({
    statusCode: 200,
    headers,
    body: slow.body(),
  }));
  assert.equal(reason, "too-slow");
  assert.deepEqual(paths, ["/file"]);
});

test("a slow file with a strong validator is requested again, to be resumed", async t => {
  const headers = { "content-type": "application/pdf", etag: '"1"' };
  const { reason, paths } = await outcomeWith(t, [file], (_, slow) => ({
    statusCode: 200,
    headers,
    body: slow.body(),
  }));
  assert.equal(reason, "too-slow");
  assert.equal(paths.length, 5);
});

test("the slow body of an error or a redirect holds no worker longer than the period of the speed", async t => {
  const gone = await outcomeWith(t, [file], (_, slow) => ({ statusCode: 404, headers: html, body: slow.body() }));
  assert.deepEqual(gone, { reason: "http-status", paths: ["/file"], elapsedS: 30 });
  const moved = await outcomeWith(t, [page], (path, slow) =>
    path === "/page"
      ? { statusCode: 302, headers: { location: "/moved" }, body: slow.body() }
      : { statusCode: 200, headers: { "content-type": "application/pdf" }, body: Readable.from([pdf("a")]) },
  );
  assert.deepEqual(moved, { reason: "ok", paths: ["/page", "/moved"], elapsedS: 30 });
});
