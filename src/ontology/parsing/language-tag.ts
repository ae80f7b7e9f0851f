/** The syntax of BCP 47, with the base direction of RDF 1.2. */
const TAG = /^[A-Za-z]{1,8}(?:-[A-Za-z0-9]{1,8})*(?:--(?:ltr|rtl))?$/;

/**
 * A language tag that can be written to a file: some files have `en_US` for `en-US`. Empty if the text is not a tag. Most
 * parsers accept any text as a tag, and in N-Triples such a text could add statements.
 */
export function languageTag(text: string): string {
  const tag = text.replaceAll("_", "-");
  return TAG.test(tag) ? tag : "";
}
