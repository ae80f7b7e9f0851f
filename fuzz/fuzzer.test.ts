import assert from "node:assert/strict";
import { test } from "node:test";
import { Random } from "../sim/random.ts";
import { Coverage } from "./coverage.ts";
import { type Finding, Fuzzer } from "./fuzzer.ts";
import type { FuzzTarget } from "./target.ts";

/** Breaks its law behind three conditions, which random inputs meet only one after the other. */
const planted: FuzzTarget = {
  name: "planted",
  seeds: ["aaaa"],
  words: ["b", "u", "g"],
  run: input => {
    if (input[0] === 0x62) {
      if (input[1] === 0x75) {
        if (input[2] === 0x67) throw new Error("planted");
      }
    }
  },
};

/** The first finding within this number of batches. */
async function findingIn(target: FuzzTarget, batches: number): Promise<Finding | undefined> {
  using coverage = new Coverage(url => url === import.meta.url);
  const corpus = target.seeds.map(seed => Buffer.from(seed as string));
  const deps = { random: new Random(1), coverage, cpuMs: () => 0, onInput: () => undefined };
  const fuzzer = new Fuzzer(target, corpus, deps);
  let finding = await fuzzer.start();
  for (let batch = 0; finding === undefined && batch < batches; batch += 1) finding = await fuzzer.step();
  return finding;
}

test("the fuzzer finds an input behind conditions that are met one after the other, and makes it short", async () => {
  const finding = await findingIn(planted, 200);
  assert.equal(finding?.input.toString(), "bug");
  assert.match(finding?.message ?? "", /planted/);
});

test("without coverage the same inputs are not found", async () => {
  using coverage = new Coverage(() => false);
  const corpus = [Buffer.from("aaaa")];
  const fuzzer = new Fuzzer(planted, corpus, {
    random: new Random(1),
    coverage,
    cpuMs: () => 0,
    onInput: () => undefined,
  });
  for (let batch = 0; batch < 200; batch += 1) assert.equal(await fuzzer.step(), undefined);
  assert.equal(fuzzer.corpus.length, 1);
});

test("an input that takes too much processor time breaks the law of every parser", async () => {
  using coverage = new Coverage(() => false);
  let cpuMs = 0;
  const slow: FuzzTarget = {
    ...planted,
    run: input => {
      cpuMs += input.length * 400;
    },
  };
  const fuzzer = new Fuzzer(slow, [Buffer.from("aaaa")], {
    random: new Random(1),
    coverage,
    cpuMs: () => cpuMs,
    onInput: () => undefined,
  });
  assert.equal((await fuzzer.start())?.message, "took 1600 ms of processor time");
});

test("the smallest corpus reaches the same code with fewer and shorter inputs", async () => {
  const isCounted = (url: string) => url === import.meta.url;
  const corpus = ["aaaa", "bbbb", "b", "bu-", "bu"].map(text => Buffer.from(text));
  using coverage = new Coverage(isCounted);
  const fuzzer = new Fuzzer(planted, corpus, {
    random: new Random(1),
    coverage,
    cpuMs: () => 0,
    onInput: () => undefined,
  });
  using fresh = new Coverage(isCounted);
  const kept = await fuzzer.smallest(fresh);
  assert.deepEqual(kept.map(String), ["b", "bu"]);
});
