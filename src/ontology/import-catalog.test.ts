import assert from "node:assert/strict";
import { test } from "node:test";
import { writeCatalog } from "./import-catalog.ts";
import type { OntologyManifest } from "./ontology-manifest.ts";
import type { OntologyStore, StoredVersion } from "./ontology-store.ts";

interface File {
  readonly id: string;
  readonly url: string;
  readonly iri?: string;
  readonly imports?: readonly string[];
}

/** The IRIs of the catalogue, each with the id of its file. */
async function catalogOf(...files: readonly File[]): Promise<Readonly<Record<string, string>>> {
  const versions = files.map(({ id, url, iri = null, imports = [] }) => {
    const facts = { ontology_iri: iri, version_iri: null, imports };
    return {
      id,
      folder: "1",
      path: "",
      manifest: { id, url, file: `${id}.owl`, facts } as unknown as OntologyManifest,
    };
  });
  let text = "";
  const store: Pick<OntologyStore, "writeText"> = {
    writeText: async (_name, written) => {
      text = written;
    },
  };
  await writeCatalog(store as OntologyStore, versions satisfies readonly StoredVersion[]);
  const entries = [...text.matchAll(/ name="([^"]*)" uri="([^/]*)\//g)];
  return Object.fromEntries(entries.map(([, name = "", id = ""]) => [name, id]));
}

test("the file of a URL takes precedence over a file that names this URL as its IRI", async () => {
  const catalog = await catalogOf(
    { id: "hp", url: "http://h.example/hp.owl", iri: "http://h.example/hp.owl" },
    { id: "hp-edit", url: "http://h.example/hp-edit.owl", iri: "http://h.example/hp.owl" },
  );
  assert.deepEqual(catalog, { "http://h.example/hp-edit.owl": "hp-edit", "http://h.example/hp.owl": "hp" });
});

test("an import that is written in another way than the URL of its file is in the catalogue", async () => {
  const catalog = await catalogOf(
    {
      id: "a",
      url: "http://h.example/a",
      imports: ["http://h.example/b#", "http://H.example/b", "http://absent.example"],
    },
    { id: "b", url: "http://h.example/b" },
  );
  assert.deepEqual(catalog, {
    "http://H.example/b": "b",
    "http://h.example/a": "a",
    "http://h.example/b": "b",
    "http://h.example/b#": "b",
  });
});

test("an IRI with characters that XML cannot contain is left out", async () => {
  const catalog = await catalogOf({ id: "a", url: "http://h.example/a", iri: "http://h.example/\u0001" });
  assert.deepEqual(catalog, { "http://h.example/a": "a" });
});
