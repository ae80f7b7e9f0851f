/** The tags of OBO whose value is one text, one name or one flag, and their properties (OBO 1.4, section 5). */
import {
  ANNOTATION_PROPERTY,
  OBO_IN_OWL,
  OWL,
  OWL_VERSION_INFO,
  RDF_TYPE,
  RDFS,
  RDFS_LABEL,
  REPLACED_BY,
} from "./rdf-vocabulary.ts";

/** Maps, because a file may have a tag such as `constructor`. */
type Tags = ReadonlyMap<string, string>;

export const TEXT_TAGS: Tags = tags({
  name: RDFS_LABEL,
  comment: `${RDFS}comment`,
  namespace: `${OBO_IN_OWL}hasOBONamespace`,
  created_by: `${OBO_IN_OWL}created_by`,
  creation_date: `${OBO_IN_OWL}creation_date`,
});

export const NAME_TAGS: Tags = tags({
  instance_of: RDF_TYPE,
  replaced_by: REPLACED_BY,
  consider: `${OBO_IN_OWL}consider`,
  subset: `${OBO_IN_OWL}inSubset`,
  equivalent_to: `${OWL}equivalentClass`,
  disjoint_from: `${OWL}disjointWith`,
  inverse_of: `${OWL}inverseOf`,
  domain: `${RDFS}domain`,
  range: `${RDFS}range`,
});

/** In a Typedef these relate properties. */
export const TYPEDEF_NAME_TAGS: Tags = tags({
  ...Object.fromEntries(NAME_TAGS),
  equivalent_to: `${OWL}equivalentProperty`,
  disjoint_from: `${OWL}propertyDisjointWith`,
});

/** If the flag is true, the property has this type. */
export const TYPE_TAGS: Tags = tags({
  is_transitive: `${OWL}TransitiveProperty`,
  is_symmetric: `${OWL}SymmetricProperty`,
  is_asymmetric: `${OWL}AsymmetricProperty`,
  is_reflexive: `${OWL}ReflexiveProperty`,
  is_functional: `${OWL}FunctionalProperty`,
  is_inverse_functional: `${OWL}InverseFunctionalProperty`,
  is_metadata_tag: ANNOTATION_PROPERTY,
});

export const HEADER_TEXT_TAGS: Tags = tags({
  "format-version": `${OBO_IN_OWL}hasOBOFormatVersion`,
  "data-version": OWL_VERSION_INFO,
  "saved-by": `${OBO_IN_OWL}savedBy`,
  "auto-generated-by": `${OBO_IN_OWL}auto-generated-by`,
  "default-namespace": `${OBO_IN_OWL}default-namespace`,
  remark: `${RDFS}comment`,
});

/** Tags of the header that define a name with a quoted text: the property above it, and the property of the text. */
export const DEFINING_TAGS = tags({
  subsetdef: { above: `${OBO_IN_OWL}SubsetProperty`, text: `${RDFS}comment` },
  synonymtypedef: { above: `${OBO_IN_OWL}SynonymTypeProperty`, text: RDFS_LABEL },
});

function tags<Value>(properties: Readonly<Record<string, Value>>): ReadonlyMap<string, Value> {
  return new Map(Object.entries(properties));
}
