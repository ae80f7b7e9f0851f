import assert from "node:assert/strict";
import { test } from "node:test";
import { ConfigError } from "../errors.ts";
import { mirrorCopies } from "./mirrors.ts";

function copiesOf(mirror: string, version = "2026-01-16") {
  const source = { id: "hp", resolver: "obo", targetFormats: [], extras: {}, mirrors: [mirror] };
  const [copy] = mirrorCopies(source, { version, format: "owl" }, "/project");
  return copy;
}

test("a folder or an https URL has the layout of a store", () => {
  assert.deepEqual(copiesOf("/srv/ontologies/"), { kind: "file", path: "/srv/ontologies/hp/2026-01-16/hp.owl" });
  assert.deepEqual(copiesOf("mirror"), { kind: "file", path: "/project/mirror/hp/2026-01-16/hp.owl" });
  const url = "https://mirror.example.org/obo/hp/2026-01-16/hp.owl";
  assert.deepEqual(copiesOf("https://mirror.example.org/obo"), { kind: "url", url });
});

test("a bucket is its public address", () => {
  const url = "https://our-ontologies.s3.amazonaws.com/obo/hp/2026-01-16/hp.owl";
  assert.deepEqual(copiesOf("s3://our-ontologies/obo"), { kind: "url", url });
});

test("a key of a bucket is encoded, so that a plus is not read as a space", () => {
  const url = "https://our-ontologies.s3.amazonaws.com/a%2Bb/hp/hp.owl";
  assert.deepEqual(copiesOf("s3://our-ontologies/a+b/{id}/{file}"), { kind: "url", url });
});

test("a mirror with another scheme or an invalid bucket is an error with the value and what is valid", () => {
  const other = ["ftp://mirror.example.org/obo", "file:///srv/obo", "http://mirror.example.org", "ftp:obo"];
  for (const mirror of [...other, "s3://Our_Bucket/obo", "s3:obo", "s3://ab/x", "s3://our-ontologies/a?b"]) {
    assert.throws(
      () => copiesOf(mirror),
      (error: unknown) => {
        assert.ok(error instanceof ConfigError);
        const message = "expected an https URL, s3://bucket/key or a folder (./name, if the name has a colon), found";
        assert.ok(error.message.includes(`${message} ${JSON.stringify(mirror)}`), error.message);
        assert.match(error.message, /^sources\.hp: mirrors\.0: /);
        assert.equal(error.message.includes("3 to 63 lower-case letters"), mirror.startsWith("s3:"));
        return true;
      },
    );
  }
  assert.throws(() => copiesOf("ftp://user:Sesame@mirror.example.org"), /found "ftp:\/\/…@mirror\.example\.org"/);
  assert.deepEqual(copiesOf("./old:mirror/{file}"), { kind: "file", path: "/project/old:mirror/hp.owl" });
});

test("a template names the parts, and a version cannot leave its place", () => {
  const template = "https://mirror.example.org/{version}/{id}?file={file}";
  const url = "https://mirror.example.org/2026-01-16/hp?file=hp.owl";
  assert.deepEqual(copiesOf(template), { kind: "url", url });
  const hostile = copiesOf("/srv/{version}/{file}", "../../etc");
  assert.deepEqual(hostile, { kind: "file", path: "/srv/etc/hp.owl" });
});

test("with a known hash, a mirror is also asked for the folders of a store that have the hash in their names", () => {
  const source = { id: "hp", resolver: "obo", targetFormats: [], extras: {} };
  const known = { version: "1", format: "obo", sha256: "0123456789abcdef".repeat(4) } as const;
  const copies = (mirror: string) =>
    mirrorCopies({ ...source, mirrors: [mirror] }, known, "/").map(copy =>
      copy.kind === "url" ? copy.url : copy.path,
    );
  const digits = known.sha256.slice(0, 32);
  assert.deepEqual(copies("/srv"), ["/srv/hp/1/hp.obo", "/srv/hp/1+01234567/hp.obo", `/srv/hp/1+${digits}/hp.obo`]);
  assert.equal(copies("s3://our-ontologies").at(-1), `https://our-ontologies.s3.amazonaws.com/hp/1%2B${digits}/hp.obo`);
  assert.deepEqual(copies("/srv/{version}/{file}"), ["/srv/1/hp.obo"]);
});
