import type { StoredVersion } from "./ontology-store.ts";

/** Options of `Ontofetch.pull`. */
export interface PullOptions {
  /** Accepts only the files whose hashes are in the lockfile; every other source fails. @default false */
  readonly frozen?: boolean | undefined;
  /**
   * Whether `sources` are all sources of `sources.yaml`. If so, entries of other ids are removed from the lockfile; with
   * `frozen` they fail.
   * @default false
   */
  readonly all?: boolean | undefined;
  /**
   * Stores a file whose bytes have changed under the same version, and a release that has lost more than a tenth of its
   * terms. Without it, both fail. It has no effect with `frozen`.
   * @default false
   */
  readonly accept?: boolean | undefined;
  /**
   * Called once for each source and each imported file, as soon as its result is known. Imports beyond the limit have
   * one result together.
   */
  readonly onResult?: ((result: PullResult) => void) | undefined;
}

/** The result of one source or of one imported file. */
export type PullResult =
  | {
      /** The id in `sources.yaml`; for an imported file, an id made from its IRI. */
      readonly id: string;
      /**
       * `fetched`: downloaded and stored. `unchanged`: the server says the stored version is current. `shared`: another
       * process has just fetched or checked it. `kept`: the store already has the locked file (`frozen`) or the
       * pinned version, and no request was sent.
       */
      readonly outcome: "fetched" | "unchanged" | "shared" | "kept";
      /** The version that is now in the store. */
      readonly stored: StoredVersion;
      /** How many requests were sent for the file, redirects not counted. */
      readonly requests: number;
      /** Bytes of an earlier, interrupted download that were not sent again. */
      readonly resumedBytes: number;
      /** The ids of the ontologies that import the file; empty for a source. */
      readonly importedBy: readonly string[];
    }
  | {
      /** The id in `sources.yaml` or in the lockfile; for an imported file, an id made from its IRI. */
      readonly id: string;
      /** Nothing was stored. */
      readonly outcome: "failed";
      /** Why, in one line. */
      readonly message: string;
      /** The ids of the ontologies that import the file; empty for a source. */
      readonly importedBy: readonly string[];
    };
