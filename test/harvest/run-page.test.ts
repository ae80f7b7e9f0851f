import assert from "node:assert/strict";
import { once } from "node:events";
import { createInterface } from "node:readline";
import { test } from "node:test";
import type { DashboardState, WorkHistoryState } from "../../src/dashboard/dashboard-state.ts";
import { temporaryFolder } from "../temporary-folder.ts";
import { internetFor } from "../testing/internet-kit.ts";
import { eventually } from "./kit.ts";
import { filesIn, isQuick, keyOf, startDocstokg } from "./processes.ts";

test("the page of a run pauses it, resumes it, and adds failed works of a reason again", async t => {
  const internet = await internetFor(t, { seed: 3, works: 62 });
  // Too slow for the run to end by itself before it is paused.
  const slow = await internet.start({ host: "*", effect: "slow", bytesPerSecond: 50_000 });
  const works = internet.works.filter(isQuick);
  const folder = temporaryFolder("harvest");
  const list = [...works.map(keyOf), "doi:10.99999/nowhere"].join("\n");
  const flags = ["--resolvers", "openalex", "--json", "--quiet", "--workers", "4", "--dashboard-port", "0"];
  const { child, ended } = startDocstokg(t, internet, folder, ["run", "--input", "-", ...flags], list);
  const [line] = await once(createInterface({ input: child.stderr ?? assert.fail() }), "line");
  const [, address = ""] = /^Dashboard: (\S+)$/.exec(line) ?? assert.fail(line);
  const { origin, search } = new URL(address);
  const read = async () => (await (await fetch(`${origin}/state${search}`)).json()) as DashboardState;
  const stateWhere = async (isWanted: (state: DashboardState) => boolean) => {
    for (;;) {
      const state = await read();
      if (isWanted(state)) return state;
    }
  };
  const { about } = await read();
  assert.deepEqual(about.actions.slice(-3), ["pause", "resume", "retry"]);
  const act = async (order: object): Promise<string> => {
    const headers = { "content-type": "application/json", origin, "x-docstokg-action": about.actionToken };
    const body = JSON.stringify({ reason: "maintenance", ...order });
    return (await fetch(`${origin}/actions${search}`, { method: "POST", headers, body })).text();
  };
  await eventually(() => filesIn(folder).length >= 1);
  await stateWhere(({ run }) => (run?.failed ?? 0) >= 1);

  assert.equal(await act({ action: "pause" }), '{"isApplied":true,"text":"applied by this process"}');
  const { run, events } = await stateWhere(({ totals }) => totals.inFlight === 0);
  const { requests } = await internet.ledger();
  assert.ok((run?.pending ?? 0) > 0, "the run has ended before it was paused");
  assert.equal(run?.isPaused, true);
  const audited = events.find(({ type }) => type === "operator");
  assert.match(audited?.text ?? "", /^run paused by an operator \(127\.0\.0\.1\): maintenance; applied by/);

  assert.match(await act({ action: "retry", failure: "no-such" }), /^400: no work has failed with "no-such"/);
  const [failure] = run?.failures ?? [];
  assert.equal(
    await act({ action: "retry", failure: failure?.reason }),
    JSON.stringify({ isApplied: true, text: `${failure?.works} work added to the run` }),
  );
  assert.equal((await internet.ledger()).requests, requests, "no request is started");
  const history = await fetch(`${origin}/work${search}&key=${encodeURIComponent("doi:10.99999/nowhere")}`);
  assert.equal(((await history.json()) as WorkHistoryState).attempts.length, 1);
  await slow.stop();
  await act({ action: "resume" });
  const { code, stdout, stderr } = await ended;
  assert.equal(code, 1, stderr);
  assert.equal(JSON.parse(stdout).works.done, works.length);
  assert.match(stderr, /pause the run by 127\.0\.0\.1: maintenance \(applied by this process\)/);
});
