import assert from "node:assert/strict";
import { test } from "node:test";
import type { OntologyManifest } from "./ontology-manifest.ts";
import { releaseProblem } from "./release-check.ts";

const SOURCE = { id: "x", resolver: "direct", targetFormats: [], extras: {} };
const release = (version: string, hash: string, terms?: number) =>
  ({
    version,
    format: "obo",
    sha256: hash.repeat(64),
    facts: terms === undefined ? null : { terms },
  }) as OntologyManifest;

test("changed bytes under one version, and a release that lost a tenth of its terms, need acceptance", () => {
  const stored = [release("1", "a", 100)];
  const problem = (manifest: OntologyManifest, isAccepted = false) =>
    releaseProblem(SOURCE, manifest, stored, isAccepted);
  assert.equal(problem(release("2", "b", 90)), undefined);
  assert.equal(problem(release("2", "b")), undefined);
  assert.equal(
    problem(release("2", "b", 89)),
    "version 2 has 89 terms, 11 % fewer than the 100 of version 1 (--accept stores it)",
  );
  assert.match(problem(release("1", "b", 100)) ?? "", /^version 1 was published again with other bytes: sha256 bbbb/);
  assert.equal(problem(release("1", "a", 0)), undefined);
  assert.equal(problem(release("1", "b", 0), true), undefined);
});

test("a release with a URL of its own is compared with the locked version of the same format, unless it is pinned", () => {
  const locked = release("2", "a", 100);
  const problem = (manifest: OntologyManifest, version?: string) =>
    releaseProblem({ ...SOURCE, version }, manifest, [], false, locked);
  assert.match(problem(release("3", "b", 89)) ?? "", /^version 3 has 89 terms, 11 % fewer than the 100 of version 2/);
  assert.equal(problem(release("3", "b", 90)), undefined);
  assert.equal(problem({ ...release("3", "b", 1), format: "turtle" }), undefined);
  assert.equal(problem(release("1", "b", 1), "1"), undefined);
  assert.equal(problem(release("2", "b", 100)), undefined);
});

test("a pinned version or hash is required even if changes are accepted", () => {
  const source = { ...SOURCE, version: "2025-01-16" };
  assert.equal(
    releaseProblem(source, release("2025-02-01", "a"), [], true),
    "the file has version 2025-02-01, but version 2025-01-16 is pinned (version in sources.yaml, or <id>@2025-01-16 of the command)",
  );
  assert.equal(releaseProblem(source, release("2025-01-16", "a"), [], false), undefined);
  const hashed = { ...SOURCE, sha256: "c".repeat(64) };
  assert.match(releaseProblem(hashed, release("1", "a"), [], true) ?? "", /^sha256 differs from the pinned one/);
});
