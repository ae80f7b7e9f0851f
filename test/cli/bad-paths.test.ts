import assert from "node:assert/strict";
import { existsSync, mkdirSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { docstokg } from "../../src/cli/docstokg.ts";
import { ontofetch } from "../../src/cli/ontofetch.ts";
import { openManifest } from "../../src/harvest/manifest/manifest.ts";
import { systemTime } from "../../src/time/system-time.ts";
import { runIn, temporaryFolder } from "./kit.ts";

/** A folder with one example of everything that can be wrong with a path, and with a valid manifest. */
async function badPaths() {
  const { folder } = await temporaryFolder();
  const at = (name: string) => join(folder, name);
  mkdirSync(at("dir"));
  writeFileSync(at("text"), "hello\n");
  writeFileSync(at("sources.yaml"), "version: 1\nsources:\n  uo:\n");
  writeFileSync(at("list.yaml"), "- 1\n");
  symlinkSync("loop", at("loop"));
  await (await openManifest(at("manifest.sqlite"), systemTime)).close();
  return at;
}

test("a path that cannot be used is one error that names its flag and the path, with exit code 2, or 1 for a file to write", async () => {
  const at = await badPaths();
  const ofManifest = ["--manifest", at("manifest.sqlite")];
  const ofSources = ["--sources", at("sources.yaml")];
  for (const [program, argv, message] of [
    [docstokg, ["run", "--input", at("loop")], `--input: cannot read ${at("loop")} (ELOOP)`],
    [docstokg, ["run", "10.1234/a", "--out", ""], "--out: the text is empty; expected a folder, or s3://bucket/prefix"],
    [docstokg, ["run", "10.1234/a", "--ca", at("dir")], `--ca: ${at("dir")} is a folder; expected a file`],
    [docstokg, ["run", "10.1234/a", "--ca", at("no")], `--ca: file not found: ${at("no")}`],
    [
      docstokg,
      ["status", "--manifest", at("dir")],
      `--manifest: cannot use ${at("dir")} as manifest: it is a folder; name a file in it with --manifest`,
    ],
    [docstokg, ["status", ...ofManifest, "--export", at("dir")], `--export: ${at("dir")} is a folder; expected a file`],
    [docstokg, ["export", ...ofManifest, "--to", at("dir")], `--to: ${at("dir")} is a folder; expected a file`],
    [
      docstokg,
      ["export", ...ofManifest, "--to", at("no/x")],
      `--to: cannot write ${at("no/x")}: folder not found: ${at("no")}`,
    ],
    [
      docstokg,
      ["manifest", "copy", at("text"), at("other")],
      `<from>: cannot use ${at("text")} as manifest: the file is damaged or not a SQLite database; the file was not changed`,
    ],
    [
      docstokg,
      ["manifest", "copy", at("manifest.sqlite"), at("dir")],
      `<to>: cannot use ${at("dir")} as manifest: it is a folder`,
    ],
    [
      docstokg,
      ["breaker", "show", "--store", `sqlite:${at("dir")}`],
      `store: ${at("dir")} is a folder; expected a file`,
    ],
    [
      docstokg,
      ["why", "http://127.0.0.1/", "--cache", `sqlite:${at("dir")}`],
      `--cache: ${at("dir")} is a folder; expected a file`,
    ],
    [
      docstokg,
      ["dashboard", ...ofManifest, "--token-file", at("dir")],
      `--token-file: ${at("dir")} is a folder; expected a file`,
    ],
    [ontofetch, ["plan", "--sources", at("list.yaml")], `${at("list.yaml")}:1: expected a map of keys and values`],
    [ontofetch, ["show", ...ofSources, "--lockfile", at("dir")], `${at("dir")}: is a folder; expected a lockfile`],
    [
      ontofetch,
      ["export", "uo", "--format", "ntriples", ...ofSources, "--to", at("no/x")],
      `--to: cannot write ${at("no/x")}: folder not found: ${at("no")}`,
    ],
  ] as const) {
    const { exitCode, stdout, stderr } = await runIn(program, argv);
    assert.equal(stderr, `${program.name}: ${message}\n`);
    const isTarget = /^--(?:export|to|output):/.test(message);
    assert.deepEqual([exitCode, stdout], [isTarget ? 1 : 2, ""], argv.join(" "));
  }
  for (const created of ["other", "no"]) assert.ok(!existsSync(at(created)), created);
});

test("a number of the store's settings is shown in a message", async () => {
  const { exitCode, stderr } = await runIn(docstokg, ["policy", "show", "--fleet-size", "0"]);
  assert.deepEqual([exitCode, stderr], [2, "docstokg: --fleet-size: backend.fleet_size: expected >=1, found 0\n"]);
});
