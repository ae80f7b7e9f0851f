import { test } from "node:test";
import { readCorpus } from "./corpus.ts";
import { TARGETS } from "./targets.ts";

for (const target of TARGETS) {
  test(`${target.name}: the parser keeps its law for every input of its corpus`, async () => {
    for (const input of readCorpus(target)) await target.run(input);
  });
}
