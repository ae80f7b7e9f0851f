/** Checks of large ontology files, compared with `rapper -c` of Raptor (Debian: raptor2-utils). */
import type { Bench } from "./kit/bench.ts";

export const bench: Bench = {
  parts: {
    "rdf-xml": () => import("./ontology/rdf-xml.ts"),
  },
};
