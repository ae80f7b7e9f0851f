import assert from "node:assert/strict";
import { test } from "node:test";
import { ask, bodyOf, directory } from "../../../../test/testing/service-kit.ts";

test("OpenAlex lists every work once with a cursor", () => {
  const seen: string[] = [];
  let cursor: string | null = "*";
  while (cursor !== null) {
    const { meta, results } = bodyOf(
      ask(`https://api.openalex.org/works?cursor=${encodeURIComponent(cursor)}&per-page=10&select=doi`),
    );
    seen.push(...results.map(({ doi }: { doi: string }) => doi.replace("https://doi.org/", "")));
    cursor = meta.next_cursor;
  }
  const known = directory.works.filter(({ registrar }) => registrar !== "none").map(({ ids }) => ids.doi);
  assert.deepEqual(seen, known);
});

test("OpenAlex filters by DOI, year, open access and search words", () => {
  const listed = (query: string) =>
    bodyOf(ask(`https://api.openalex.org/works?per-page=200&${query}`)).results.map((each: { doi: string }) =>
      each.doi.slice(16),
    );
  const [one, two] = directory.works.filter(({ registrar }) => registrar !== "none");
  assert.deepEqual(listed(`filter=doi:${one?.ids.doi}|https://doi.org/${two?.ids.doi}`), [one?.ids.doi, two?.ids.doi]);
  const young = directory.works
    .filter(({ year, registrar }) => year >= 2020 && registrar !== "none")
    .map(({ ids }) => ids.doi);
  assert.deepEqual(listed("filter=publication_year:2020-"), young);
  const open = directory.works.filter(({ copies }) => copies.some(({ via }) => via.includes("openalex")));
  assert.deepEqual(
    listed("filter=is_oa:true"),
    open.map(({ ids }) => ids.doi),
  );
  const word = one?.title.split(" ")[1] ?? "";
  const titled = directory.works.filter(({ title, registrar }) => title.includes(word) && registrar !== "none");
  assert.deepEqual(
    listed(`search=${word}`),
    titled.map(({ ids }) => ids.doi),
  );
});
