/** IRIs of the vocabularies that the parsers and the facts need. */
export const RDF = "http://www.w3.org/1999/02/22-rdf-syntax-ns#";
export const RDFS = "http://www.w3.org/2000/01/rdf-schema#";
export const OWL = "http://www.w3.org/2002/07/owl#";
export const SKOS = "http://www.w3.org/2004/02/skos/core#";
export const XSD = "http://www.w3.org/2001/XMLSchema#";
export const OBO = "http://purl.obolibrary.org/obo/";
export const OBO_IN_OWL = "http://www.geneontology.org/formats/oboInOwl#";
export const RDF_TYPE = `${RDF}type`;
export const RDFS_LABEL = `${RDFS}label`;
export const SUB_CLASS_OF = `${RDFS}subClassOf`;
export const SUB_PROPERTY_OF = `${RDFS}subPropertyOf`;
export const OWL_CLASS = `${OWL}Class`;
export const OWL_ONTOLOGY = `${OWL}Ontology`;
export const OWL_DEPRECATED = `${OWL}deprecated`;
export const OWL_IMPORTS = `${OWL}imports`;
export const OWL_VERSION_IRI = `${OWL}versionIRI`;
export const OWL_VERSION_INFO = `${OWL}versionInfo`;
export const OBJECT_PROPERTY = `${OWL}ObjectProperty`;
export const ANNOTATION_PROPERTY = `${OWL}AnnotationProperty`;
export const NAMED_INDIVIDUAL = `${OWL}NamedIndividual`;
/** A datatype of OWL that does not occur in RDF: there such a literal has a language or nothing. */
export const PLAIN_LITERAL = `${RDF}PlainLiteral`;
export const XSD_BOOLEAN = `${XSD}boolean`;
/** "definition" of the Information Artifact Ontology. */
export const DEFINITION = `${OBO}IAO_0000115`;
/** "term replaced by" of the Information Artifact Ontology. */
export const REPLACED_BY = `${OBO}IAO_0100001`;
