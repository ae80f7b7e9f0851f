import assert from "node:assert/strict";
import { test } from "node:test";
import { ChaosProcess } from "./chaos-process.ts";
import { planOf } from "./plan.ts";
import { LINK_FAULTS, PROCESS_FAULTS } from "./process-faults.ts";
import { StoreLink } from "./store-link.ts";

const WORKER = { store: "", origin: "", rates: "", mode: "wait", callers: 1, stampsFile: "" } as const;

async function planned(seed: number, count: number) {
  const link = await StoreLink.to([]);
  const fleet = [1, 2, 3, 4].map(index => new ChaosProcess(index, link, WORKER, () => undefined));
  const plan = planOf(seed, [...PROCESS_FAULTS, ...LINK_FAULTS], fleet, [10, 20]);
  return Array.from({ length: count }, () => plan.next().value);
}

test("the seed decides the faults, their details and their durations", async () => {
  const texts = async (seed: number) =>
    (await planned(seed, 30)).map(({ calmMs, fault }) => `${calmMs} ${fault.name} ${fault.detail} ${fault.durationMs}`);
  assert.deepEqual(await texts(7), await texts(7));
  assert.notDeepEqual(await texts(7), await texts(8));
});

test("every kind of fault comes once before any comes again", async () => {
  const kinds = [...PROCESS_FAULTS, ...LINK_FAULTS].map(({ name }) => name).sort();
  const names = (await planned(3, 2 * kinds.length)).map(({ fault }) => fault.name);
  assert.deepEqual(names.slice(0, kinds.length).sort(), kinds);
  assert.deepEqual(names.slice(kinds.length).sort(), kinds);
});
