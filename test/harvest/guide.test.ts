import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { Command } from "commander";
import { addPolicyFlags } from "../../src/cli/docstokg/policy-flags.ts";
import { run } from "../../src/cli/docstokg/run.ts";
import { REASONS } from "../../src/harvest/reason.ts";

const guide = readFileSync(join(import.meta.dirname, "../../docs/guides/run.md"), "utf8");

test("the guide lists every reason in the words of the code", () => {
  const [, section = ""] = /## Reasons\n([\s\S]*?)\n## /.exec(guide) ?? [];
  const rows = [...section.matchAll(/^\| `([\w-]+)` \| (.*) \|$/gm)].map(([, code, words]) => [code, words]);
  assert.deepEqual(rows, Object.entries(REASONS));
});

test("the guide lists every flag of run except policy flags, and no other", () => {
  const command = new Command();
  run.configure?.(command);
  const ofPolicy = new Command();
  addPolicyFlags(ofPolicy);
  const policyFlags = new Set(ofPolicy.options.map(({ long }) => long));
  const own = command.options.map(({ long }) => long).filter(long => !policyFlags.has(long));
  const [, section = ""] = /## Flags\n([\s\S]*?)\n## /.exec(guide) ?? [];
  const listed = [...section.matchAll(/^\| (.*?) \|/gm)].flatMap(([, cell = ""]) => cell.match(/--[a-z-]+/g) ?? []);
  assert.deepEqual(listed.sort(), own.sort());
});
