import assert from "node:assert/strict";
import { join, resolve } from "node:path";
import { test } from "node:test";
import { locationFlagsOf } from "./path-flags.ts";

test("the flags of a run are those that other commands need to find its manifest and its folder", () => {
  const papers = resolve("papers");
  const file = "manifest.sqlite";
  const url = "postgres://ann@db.example.org/works";
  const flagsOf = (folder: string, manifest: string, named?: string) => {
    const { ofRun, ofManifest } = locationFlagsOf({ folder, manifest }, { env: { DOCSTOKG_MANIFEST: named } });
    return [ofRun, ofManifest];
  };
  assert.deepEqual(flagsOf(papers, join(papers, file)), ["", ""]);
  assert.deepEqual(flagsOf("/data/x", `/data/x/${file}`), [" --out /data/x", " --out /data/x"]);
  assert.deepEqual(flagsOf("/my data/ann's", `/my data/ann's/${file}`)[0], " --out '/my data/ann'\\''s'");
  assert.deepEqual(flagsOf(papers, "/m.sqlite"), [" --manifest /m.sqlite", " --manifest /m.sqlite"]);
  assert.deepEqual(flagsOf("s3://bucket/x", url), [` --out s3://bucket/x --manifest ${url}`, ` --manifest ${url}`]);
});

test("a manifest that a variable names is not repeated, because its URL may contain a password", () => {
  const url = "postgres://ann:hidden@db.example.org/works";
  const flags = locationFlagsOf({ folder: "/data/x", manifest: url }, { env: { DOCSTOKG_MANIFEST: url } });
  assert.deepEqual(flags, { ofRun: " --out /data/x", ofManifest: "" });
});
