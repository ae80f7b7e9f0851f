import { createHash } from "node:crypto";
import { webUrlWithoutCredentials } from "./registry-json.ts";
import type { Source } from "./resolver.ts";

/** A real closure has fewer imports. Further imports are not fetched, and reported as a failure. */
export const IMPORTS_MAX = 1000;

/** Imports beyond the limit. */
export interface SkippedImports {
  /** The id that the first of them would have. */
  readonly firstId: string;
  readonly count: number;
  /** The ids of the ontologies that import them, sorted. */
  readonly importers: readonly string[];
}

/** The files that ontologies import, directly or indirectly, and for each file the ids that import it. */
export class ImportClosure {
  /** By IRI: the id of the source that provides it. */
  readonly #ids = new Map<string, string>();
  readonly #importers = new Map<string, Set<string>>();
  /** By IRI: the ids that import it. */
  readonly #skipped = new Map<string, Set<string>>();
  #required = 0;

  /** Records a file that was pulled, under every IRI by which it may be imported. */
  provide(id: string, iris: readonly (string | null)[]): void {
    for (const iri of iris) if (iri !== null && !this.#ids.has(iri)) this.#ids.set(iri, id);
  }

  /** Returns sources for the imports that are not known yet. For the others it only records the importer. */
  require(importer: string, iris: readonly string[]): readonly Source[] {
    return iris.flatMap(iri => {
      const url = webUrlWithoutCredentials(iri) ?? iri;
      const known = this.#ids.get(iri) ?? this.#ids.get(url);
      if (known === undefined && this.#required >= IMPORTS_MAX) {
        this.#skipped.set(iri, (this.#skipped.get(iri) ?? new Set()).add(importer));
        return [];
      }
      const id = known ?? importId(iri);
      const importers = this.#importers.get(id) ?? new Set();
      this.#importers.set(id, importers.add(importer));
      if (known !== undefined) return [];
      this.#required += 1;
      this.#ids.set(iri, id);
      // Other files may write the same address in another way, such as `http://host/x#`.
      this.#ids.set(url, id);
      return [{ id, resolver: "direct", targetFormats: [], extras: { url }, imports: true }];
    });
  }

  /** The imports beyond the limit; undefined if there are none. */
  skipped(): SkippedImports | undefined {
    const [first] = this.#skipped.keys();
    if (first === undefined) return undefined;
    const importers = new Set([...this.#skipped.values()].flatMap(ids => [...ids]));
    return { firstId: importId(first), count: this.#skipped.size, importers: [...importers].sort() };
  }

  importersOf(id: string): readonly string[] {
    return [...(this.#importers.get(id) ?? [])].sort();
  }
}

/** A valid id for an imported file: its name and a part of the hash of its IRI. */
function importId(iri: string): string {
  const [path = ""] = iri.split(/[?#]/, 1);
  const name = path.split("/").findLast(part => part !== "") ?? "";
  const plain = name.toLowerCase().replace(/[^a-z0-9]+/g, "-");
  const stem = plain.startsWith("-") ? plain.slice(1) : plain;
  return `${stem.slice(0, 40)}${stem === "" || stem.endsWith("-") ? "" : "-"}${createHash("sha256").update(iri).digest("hex").slice(0, 8)}`;
}
