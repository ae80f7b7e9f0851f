import assert from "node:assert/strict";
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { type TestContext, test } from "node:test";
import { complete, indexAt, pdf, runFor, workCalled } from "../../../test/harvest/kit.ts";
import { hubFor, serve } from "../../../test/http/kit.ts";
import { temporaryFolder } from "../../../test/temporary-folder.ts";
import { workOf } from "../identifiers/identifiers.ts";
import type { Work } from "../work.ts";
import type { Layout } from "./layout.ts";

/** Every work has a file of its own URL; `bytesOf` gives its bytes by the name of the work. */
async function harvestInto(
  t: TestContext,
  folder: string,
  works: readonly Work[],
  layout: Layout,
  bytesOf: (name: string) => { readonly kind: string; readonly bytes: Buffer },
) {
  const server = await serve(t, (request, response) => {
    const name = request.url?.split("/").at(-1) ?? "";
    const { kind, bytes } = bytesOf(name);
    if (request.url?.startsWith("/index/"))
      response.end(JSON.stringify([{ url: `http://${request.headers.host}/files/${name}`, kind }]));
    else response.end(bytes);
  });
  const hub = await hubFor(t);
  const options = { hub, resolvers: [indexAt(server.origin)], layout, metadata: "json", workers: 1 } as const;
  await complete(await runFor(t, folder, options), works, true);
}

/** The keys in all metadata files, by their paths. */
function keysIn(folder: string): Readonly<Record<string, string>> {
  const paths = readdirSync(folder, { recursive: true, encoding: "utf8" }).filter(path => path.endsWith(".json"));
  return Object.fromEntries(paths.sort().map(path => [path, JSON.parse(readFileSync(join(folder, path), "utf8")).key]));
}

const SAME = { kind: "pdf", bytes: pdf("same") };
const XML = { kind: "xml", bytes: Buffer.from('<?xml version="1.0"?><article>text</article>') };

for (const layout of ["flat", "by-doi", "content-addressed", "{year}/{doi}.{ext}", "{year}.{ext}"] as const) {
  test(`works with the same bytes keep their metadata in the layout ${layout}`, async t => {
    const folder = temporaryFolder("metadata");
    const works = ["a", "b", "c"].map(workCalled);
    await harvestInto(t, folder, works, layout, () => SAME);
    const keys = keysIn(folder);
    assert.deepEqual(Object.values(keys).sort(), ["doi:10.5555/a", "doi:10.5555/b", "doi:10.5555/c"]);
    // Another run, which settles them in another order, writes the same files.
    await harvestInto(t, folder, works.toReversed(), layout, () => SAME);
    assert.deepEqual(keysIn(folder), keys);
  });
}

test("metadata has the name of the file if that comes from an identifier of the work", async t => {
  for (const [layout, path] of [
    ["flat", "doi_10.5555_a.json"],
    ["by-doi", "10.5555/a.json"],
    ["files/{doi}.{ext}", "files/10.5555_a.json"],
  ] as const) {
    const folder = temporaryFolder("metadata");
    await harvestInto(t, folder, [workCalled("a")], layout, () => SAME);
    assert.deepEqual(keysIn(folder), { [path]: "doi:10.5555/a" });
  }
});

test("works whose files differ only in their extension keep their metadata", async t => {
  const folder = temporaryFolder("metadata");
  const works = ["a", "b"].map(name => workOf({ doi: `10.5555/${name}` }, { year: 2020 }));
  await harvestInto(t, folder, works, "{year}.{ext}", name => (name === "a" ? SAME : XML));
  assert.ok(readdirSync(folder).includes("2020.pdf"));
  assert.ok(readdirSync(folder).includes("2020.xml"));
  assert.deepEqual(Object.values(keysIn(folder)).sort(), ["doi:10.5555/a", "doi:10.5555/b"]);
});
