import { blankNodeOf } from "./blank-nodes.ts";
import { HashTable } from "./hash-table.ts";
import type { IriBase } from "./iri-base.ts";
import { SyntaxProblem } from "./syntax-problem.ts";

const NAME_START =
  "A-Z_a-z\\u00c0-\\u00d6\\u00d8-\\u00f6\\u00f8-\\u02ff\\u0370-\\u037d\\u037f-\\u1fff\\u200c\\u200d\\u2070-\\u218f" +
  "\\u2c00-\\u2fef\\u3001-\\ud7ff\\uf900-\\ufdcf\\ufdf0-\\ufffd\\u{10000}-\\u{effff}";
/** An XML name without a colon. */
const NC_NAME = new RegExp(`^[${NAME_START}][${NAME_START}.\\d\\u00b7\\u0300-\\u036f\\u203f\\u2040-]*$`, "u");

/** The values of `rdf:ID` in a file. Each may occur once with the same base. */
export class RdfXmlIds {
  readonly #iris = new HashTable();

  /** The IRI of an `rdf:ID`. @throws SyntaxProblem if the id is invalid or occurred before. */
  claim(base: IriBase, id: string): string {
    checkName("rdf:ID", id);
    const iri = base.resolve(`#${id}`);
    if (this.#iris.add(iri, 1)) return iri;
    throw new SyntaxProblem(`rdf:ID ${JSON.stringify(id.slice(0, 80))} occurs twice`);
  }
}

/** The blank node of an `rdf:nodeID`. @throws SyntaxProblem if the id is invalid. */
export function nodeOfId(id: string): string {
  checkName("rdf:nodeID", id);
  return blankNodeOf(id);
}

function checkName(attribute: string, id: string): void {
  if (!NC_NAME.test(id)) throw new SyntaxProblem(`invalid ${attribute} ${JSON.stringify(id.slice(0, 80))}`);
}
