import type { OntologyFacts } from "./ontology-facts.ts";
import { OWL_IMPORTS, OWL_VERSION_INFO, OWL_VERSION_IRI, RDFS_LABEL } from "./rdf-vocabulary.ts";
import type { ObjectKind } from "./statement.ts";

const DCTERMS = "http://purl.org/dc/terms/";
const DC = "http://purl.org/dc/elements/1.1/";
const PAV = "http://purl.org/pav/";
const SCHEMA = ["http://schema.org/", "https://schema.org/"];
/** A name of schema.org, with either spelling of its namespace. */
const schemaOrg = (name: string) => SCHEMA.map(base => base + name);

type Field = "versionIri" | "versionInfo" | "version" | "date" | "licence" | "rights" | "title" | "label" | "import";

const FIELDS: ReadonlyMap<string, Field> = new Map([
  [OWL_VERSION_IRI, "versionIri"],
  [OWL_VERSION_INFO, "versionInfo"],
  [OWL_IMPORTS, "import"],
  ...[`${PAV}version`, ...schemaOrg("version"), ...schemaOrg("softwareVersion"), `${DCTERMS}hasVersion`].map(
    asField("version"),
  ),
  ...["modified", "issued", "date", "created"].map(name => DCTERMS + name).map(asField("date")),
  ...["lastUpdateOn", "createdOn", "authoredOn"].map(name => PAV + name).map(asField("date")),
  ...[...schemaOrg("dateModified"), ...schemaOrg("datePublished"), ...schemaOrg("dateCreated"), `${DC}date`].map(
    asField("date"),
  ),
  ...[`${DCTERMS}license`, "http://creativecommons.org/ns#license", ...schemaOrg("license")].map(asField("licence")),
  ...["http://www.w3.org/1999/xhtml/vocab#license", `${DC}license`].map(asField("licence")),
  ...[`${DCTERMS}rights`, `${DC}rights`].map(asField("rights")),
  ...[`${DCTERMS}title`, `${DC}title`].map(asField("title")),
  [RDFS_LABEL, "label"],
]);

interface Header {
  readonly values: Map<Field, string>;
  readonly imports: Set<string>;
}

/** The facts of the last subjects are kept, because the statement that a subject is the ontology may come late. */
const RECENT_MAX = 256;
const MARKED_MAX = 1000;
const IMPORTS_MAX = 10_000;
const TEXT_MAX = 512;

/** What the file says about the ontology itself. */
export class HeaderFacts {
  readonly #recent = new Map<string, Header>();
  readonly #ontologies = new Map<string, Header>();
  readonly #schemes = new Map<string, Header>();
  #lastSubject = "";
  #lastLabel = { subject: "", text: "" };
  #last: Header | undefined;

  collect(subject: string, predicate: string, object: string, kind: ObjectKind): void {
    const field = FIELDS.get(predicate);
    if (field === undefined || (field === "import" ? kind !== "iri" : kind !== "iri" && kind !== "literal")) return;
    // Every class has a label, so before a subject is known to be an ontology, only the last label is kept.
    if (field === "label" && !this.#isMarked(subject)) {
      this.#lastLabel = { subject, text: object.trim().slice(0, TEXT_MAX) };
      return;
    }
    const header = this.#headerOf(subject);
    if (field === "import") {
      if (header.imports.size < IMPORTS_MAX) header.imports.add(object);
      return;
    }
    const text = object.trim().slice(0, TEXT_MAX);
    if (text === "") return;
    // The first value counts. Of several dates the latest counts, because it is the date of the version.
    const known = header.values.get(field);
    if (known === undefined || (field === "date" && isLater(text, known))) header.values.set(field, text);
  }

  /** Records that the subject is an ontology or, if `isOntology` is false, a concept scheme. */
  markSubject(subject: string, isOntology: boolean): void {
    const marked = isOntology ? this.#ontologies : this.#schemes;
    if (marked.size >= MARKED_MAX) return;
    const header = this.#headerOf(subject);
    const { subject: labelled, text } = this.#lastLabel;
    if (labelled === subject && text !== "" && !header.values.has("label")) header.values.set("label", text);
    marked.set(subject, header);
    this.#recent.delete(subject);
  }

  facts(): Pick<
    OntologyFacts,
    "ontology_iri" | "version_iri" | "version_info" | "date" | "title" | "licence" | "imports"
  > {
    const headers = this.#ontologies.size > 0 ? [...this.#ontologies] : [...this.#schemes];
    // A file may also contain the headers of imported ontologies. Its own header is the one with a version.
    const [iri = "", header] =
      headers.find(([, { values }]) => values.has("versionIri") || values.has("versionInfo")) ?? headers[0] ?? [];
    const firstOf = (...fields: readonly Field[]) =>
      fields.map(field => header?.values.get(field)).find(Boolean) ?? null;
    return {
      ontology_iri: iri === "" || iri.startsWith("_:") ? null : iri,
      version_iri: firstOf("versionIri"),
      version_info: firstOf("versionInfo", "version"),
      date: firstOf("date"),
      title: firstOf("title", "label"),
      licence: firstOf("licence", "rights"),
      imports: [...new Set(headers.flatMap(([, { imports }]) => [...imports]))].sort(),
    };
  }

  #isMarked(subject: string): boolean {
    return this.#ontologies.has(subject) || this.#schemes.has(subject);
  }

  #headerOf(subject: string): Header {
    if (this.#last !== undefined && subject === this.#lastSubject) return this.#last;
    const known = this.#ontologies.get(subject) ?? this.#schemes.get(subject) ?? this.#recent.get(subject);
    const header = known ?? { values: new Map<Field, string>(), imports: new Set<string>() };
    if (known === undefined) {
      this.#recent.set(subject, header);
      const [oldest] = this.#recent.keys();
      if (this.#recent.size > RECENT_MAX && oldest !== undefined) this.#recent.delete(oldest);
    }
    this.#lastSubject = subject;
    this.#last = header;
    return header;
  }
}

/** Only a date that begins with its year can be compared; it takes precedence over one such as "May 2012". */
function isLater(date: string, other: string): boolean {
  const startsWithYear = /^\d{4}\b/;
  return startsWithYear.test(date) && (!startsWithYear.test(other) || date > other);
}

function asField(field: Field): (predicate: string) => readonly [string, Field] {
  return predicate => [predicate, field];
}
