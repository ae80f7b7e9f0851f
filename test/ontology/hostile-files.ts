/** Files that were made to occupy a parser: each repeats, nests or leaves open what some parser handles slowly. */
const RDF_NS = 'xmlns:rdf="http://www.w3.org/1999/02/22-rdf-syntax-ns#"';
const OWL = "http://www.w3.org/2002/07/owl#";

const fill = (bytes: number, item: (index: number) => string): string => {
  const items: string[] = [];
  for (let length = 0, index = 0; length < bytes; index += 1) {
    const text = item(index);
    items.push(text);
    length += text.length;
  }
  return items.join("");
};
const repeat = (bytes: number, text: string) => text.repeat(Math.ceil(bytes / text.length));
const rdf = (inside: string, more = "") => `<rdf:RDF ${RDF_NS} xmlns:e="urn:e:" ${more}>${inside}</rdf:RDF>`;

/** By name: a file of about so many bytes. */
export const HOSTILE_FILES: Readonly<Record<string, (bytes: number) => string>> = {
  "versionIRI without an end": n => `<rdf:RDF ${RDF_NS} xmlns:owl="${OWL}">${repeat(n, "<owl:versionIRI ")}`,
  "many namespaces": n =>
    rdf(
      repeat(n / 2, "<e:A/>"),
      fill(n / 2, i => `xmlns:n${i}="urn:${i}" `),
    ),
  "many namespaces, used at depth": n =>
    rdf(
      `${repeat(15_000, "<e:A><e:p>")}${repeat(n, "<e:A/>")}`,
      fill(n / 8, i => `xmlns:n${i}="urn:${i}" `),
    ),
  "deep, then wide": n =>
    rdf(`${"<e:A><e:p>".repeat(900)}<e:A>${repeat(n, "<e:q/>")}</e:A>${"</e:p></e:A>".repeat(900)}`),
  "a long namespace": n =>
    rdf(
      fill(n / 2, i => `<f:a${i}/>`),
      `xmlns:f="urn:${"f".repeat(1000)}"`,
    ),
  "a namespace too long": n =>
    rdf(
      fill(n / 2, i => `<f:a${i}/>`),
      `xmlns:f="urn:${"f".repeat(n / 2)}"`,
    ),
  "a long base": n =>
    rdf(
      fill(n, i => `<e:A rdf:about="../${i}"/>`),
      `xml:base="http://a/${"b/".repeat(240)}"`,
    ),
  "a base on every element": n => rdf(repeat(n, '<e:A xml:base="a/b/c/"/>')),
  "one element with many attributes": n => rdf(`<e:A ${fill(n, i => `e:a${i}="x" `)}/>`),
  "entities of entities": n => {
    const declared = Array.from({ length: 30 }, (_, i) => `<!ENTITY a${i + 1} "&a${i};&a${i};">`).join("");
    return `<!DOCTYPE rdf:RDF [<!ENTITY a0 "xx">${declared}]>${rdf(`<e:A>${repeat(n, "&a30;")}</e:A>`)}`;
  },
  "one long entity, many times": n =>
    `<!DOCTYPE rdf:RDF [<!ENTITY a "${"x".repeat(1000)}">]>${rdf(`<e:A><e:p>${repeat(n, "&a;")}</e:p></e:A>`)}`,
  "many entities": n => `<!DOCTYPE rdf:RDF [${fill(n, i => `<!ENTITY a${i} "b">`)}]>${rdf("")}`,
  "an open document type": n => `<!DOCTYPE rdf:RDF [${repeat(n, "<!ENTITY ")}`,
  "an open comment": n => `<!--${repeat(n, "- ")}`,
  "open comments": n => `${rdf("")}${repeat(n, "<!-- ")}`,
  "many ids": n => rdf(fill(n, i => `<e:A rdf:ID="a${i}"/>`)),
  "a long subject with many types": n => `<urn:${"x".repeat(n / 2)}> a ${repeat(n / 2, "<a:b>,")}<a:b> .`,
  "a subject of 8,000 characters with many types": n => `<urn:${"x".repeat(8000)}> a ${repeat(n, "<a:b>,")}<a:b> .`,
  "a long subject with many types, RDF/XML": n =>
    rdf(`<e:A rdf:about="urn:${"x".repeat(n / 2)}">${repeat(n / 2, '<rdf:type rdf:resource="a"/>')}</e:A>`),
  "a long subject with many types, JSON-LD": n =>
    `{"@id":"urn:${"x".repeat(n / 2)}","@type":[${repeat(n / 2, '"a:b",')}"a:b"]}`,
  "a long subject with many types, Manchester": n =>
    `Prefix: a: <urn:a>\nIndividual: <urn:${"x".repeat(n / 2)}> Types: ${repeat(n / 2, "a:b,")} a:b`,
  "a long identifier with many types, OBO": n =>
    `[Term]\nid: ${"x".repeat(n / 2)}\n${repeat(n / 2, "instance_of:x\n")}`,
  "many reifiers of a long literal": n => `<a:a> <a:b> "${"x".repeat(n / 2)}" ${repeat(n / 2, "~ ")} .`,
  "relative bases": n => `${repeat(n / 2, `@base <${"b/".repeat(250)}> . `)}${fill(n / 2, i => `<${i}> a <a:d> .`)}`,
  "relative bases, JSON-LD": n => {
    const bases = Array.from({ length: 30 }, () => `{"@base":"${"b/".repeat(255)}"}`);
    return `{"@context":[${bases.join(",")}],"@graph":[${fill(n, i => `{"@id":"${i}","@type":"a:b"},`)}{"@id":"x"}]}`;
  },
  "a scoped context that is read again for each node": n => {
    const terms = fill(n / 2, i => `"t${i}":"urn:${i}",`);
    const nodes = repeat(n / 2, '{"@context":{"a":null},"p":{}},');
    return `{"@context":{"p":{"@id":"urn:p","@context":{${terms}"z":"urn:z"}}},"@graph":[${nodes}{}]}`;
  },
  "XML literals": n => rdf(`<e:A><e:p rdf:parseType="Literal">${repeat(n, "<b/>")}</e:p></e:A>`),
  "XML literals with a long namespace": n =>
    rdf(`<e:A><e:p rdf:parseType="Literal">${repeat(n, "<f:b/>")}</e:p></e:A>`, `xmlns:f="urn:${"f".repeat(1000)}"`),
  "XML literals with many namespaces": n =>
    rdf(
      `<e:A><e:p rdf:parseType="Literal"><e:b ${fill(n / 5, i => `n${i}:a="" `)}>${repeat(n / 2, "<n0:b/>")}</e:b></e:p></e:A>`,
      fill(n / 2, i => `xmlns:n${i}="urn:${i}" `),
    ),
  "text in many pieces": n => rdf(`<e:A><e:p>${repeat(n, "&lt;<![CDATA[a]]>")}</e:p></e:A>`),
  "a long collection": n => rdf(`<e:A><e:p rdf:parseType="Collection">${repeat(n, "<e:B/>")}</e:p></e:A>`),
  "OWL/XML: wide axiom": n =>
    `<Ontology xmlns="${OWL}"><DisjointClasses>${repeat(n, '<Class IRI="a"/>')}</DisjointClasses></Ontology>`,
  "Turtle: open brackets": n => `<a> <b> ${repeat(n, "[ <c> ")}`,
  "Turtle: open lists": n => `<a> <b> ${repeat(n, "(")}`,
  "Turtle: open strings": n => repeat(n, '"'),
  "Turtle: an open long string": n => `<a> <b> """${repeat(n, '"" \\')}`,
  "Turtle: an open IRI": n => `<a> <b> <${repeat(n, "a")}`,
  "Turtle: escapes": n => `<a> <b> "${repeat(n, "\\u0041")}" .`,
  "Turtle: a long prefix": n => `@prefix a: <urn:${"a".repeat(1000)}> . ${fill(n, i => `a:b${i} a:c a:d .`)}`,
  "Turtle: a prefix too long": n => `@prefix a: <urn:${"a".repeat(n / 2)}> . ${fill(n / 2, i => `a:b${i} a:c a:d .`)}`,
  "Turtle: a long base": n => `@base <http://a/${"b/".repeat(240)}> . ${fill(n, i => `<./${i}> <../c> <d> .`)}`,
  "Turtle: many prefixes": n => fill(n, i => `@prefix a${i}: <urn:${i}> . `),
  "Turtle: a name without an end": n => `a:${repeat(n, "b.")}`,
  "Turtle: a blank node without an end": n => `_:${repeat(n, "b.")}`,
  "Turtle: a number without an end": n => `<a> <b> ${repeat(n, "1")}`,
  "Turtle: a language without an end": n => `<a> <b> "c"@${repeat(n, "en-")}`,
  "Turtle: objects": n => `<a> <b> ${repeat(n, "1,")} 1 .`,
  "Turtle: triple terms": n => `<a> <b> ${repeat(n, "<<( <a> <b> ")}`,
  "TriG: graphs": n => repeat(n, "<g>{<a> <b> <c>}"),
  "comment lines": n => repeat(n, "#\n"),
  "blank lines": n => repeat(n, "\n"),
  spaces: n => repeat(n, " "),
  "OBO: one long line": n => `[Term]\nid: a\nname: ${repeat(n, '\\" { ! ')}`,
  "OBO: continued lines": n => `[Term]\nid: a\nname: ${repeat(n, "a\\\n")}`,
  "OBO: a long prefix": n =>
    `idspace: a http://a/${"a".repeat(1000)}\n[Term]\nid: b\n${fill(n, i => `is_a: a:${i}\n`)}`,
  "OBO: a long ontology name": n => `ontology: ${"a".repeat(1000)}\n${fill(n, i => `[Term]\nid: c${i}\n`)}`,
  "OBO: stanzas": n => fill(n, i => `[Term]\nid: a:${i}\n`),
  "OBO: qualifiers": n => `[Term]\nid: a\nis_a: b ${repeat(n, " {")}`,
  "OBO: quotation marks in qualifiers": n => `[Term]\nid: a\nis_a: b {"${repeat(n, '\\"')}}`,
  "OBO: names of qualifiers": n => `[Term]\nid: a\nis_a: b {${repeat(n, "a=")}}`,
  "OBO: a long shorthand": n =>
    `[Typedef]\nid: p\nxref: a:${"a".repeat(1000)}\n${fill(n, i => `[Term]\nid: a:${i}\nrelationship: p b\n`)}`,
  "functional: open parentheses": n => `Ontology(${repeat(n, "SubClassOf(")}`,
  "functional: wide": n => `Ontology(DisjointClasses(${repeat(n, "<a> ")}))`,
  "functional: an open string": n => `Ontology(Annotation(rdfs:label "${repeat(n, "\\\\")}`,
  "functional: axioms": n =>
    `Prefix(a:=<urn:${"a".repeat(1000)}>)Ontology(${fill(n, i => `Declaration(Class(a:${i}))`)})`,
  "Manchester: open brackets": n => `Class: <a> SubClassOf: ${repeat(n, "(")}`,
  "Manchester: a list": n => `Class: <a> SubClassOf: ${repeat(n, "<b>, ")}<b>`,
  "Manchester: digits": n => `Class: <a> Facts: <p> ${repeat(n, "1")}x`,
  "JSON: open lists": n => repeat(n, "["),
  "JSON: open objects": n => repeat(n, '{"a":'),
  "JSON: an open string": n => `{"graphs":[{"nodes":[{"id":"${repeat(n, "\\\\")}`,
  "JSON: nodes": n => `{"graphs":[{"nodes":[${fill(n, i => `{"id":"${i}"},`)}{"id":"a"}]}]}`,
  "JSON: keys": n => `{${fill(n, i => `"k${i}":1,`)}"graphs":[]}`,
  "JSON-LD: a scoped context, used often": n =>
    `{"@context":{"p":{"@id":"urn:p","@context":{${fill(n / 2, i => `"t${i}":"urn:${i}",`)}"z":"urn:z"}}},"@graph":[${fill(n / 2, () => '{"p":{"z":1}},')}1]}`,
  "JSON-LD: terms in a chain": n =>
    `{"@context":{${fill(n, i => `"t${i}":"t${i + 1}:a",`)}"z":"urn:z"},"@id":"urn:a","z":1}`,
  "JSON-LD: prefixes in a chain": n =>
    `{"@context":{${fill(n / 2, i => `"t${i}":{"@id":"t${i - 1}:${"a".repeat(100)}","@prefix":true},`)}"t-1":"urn:z"},"@id":"urn:a","t0":1}`,
  "JSON-LD: contexts inside each other": n =>
    `${repeat(Math.min(n, 60_000), '{"@context":{"p":"urn:p"},"p":')}1${"}".repeat(2000)}`,
  "JSON-LD: values": n => `{"@context":{"p":"urn:p"},"@id":"urn:a","p":[${repeat(n, "1,")}1]}`,
  "JSON-LD: nodes": n =>
    `{"@context":{"o":"${OWL}"},"@graph":[${fill(n, i => `{"@id":"urn:${i}","@type":"o:Class","o:versionInfo":{"@value":"a","@language":"en"}},`)}{"@id":"urn:a"}]}`,
  "JSON-LD: types": n => `{"@id":"urn:a","@type":[${fill(n, i => `"urn:${i}",`)}"urn:b"]}`,
  "JSON-LD: a long vocabulary": n =>
    `{"@context":{"@vocab":"urn:${"a".repeat(1000)}"},"@id":"urn:a",${fill(n, i => `"p${i}":1,`)}"q":1}`,
  letters: n => repeat(n, "a"),
  words: n => repeat(n, "a b:c "),
};
