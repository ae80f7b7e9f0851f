/** The result for a text that only the complete parser can read. */
export const UNCLEAR = Symbol("unclear");

const WHOLE_NUMBER = /^(?:0|[1-9]\d{0,14})$/;
const DECIMAL = /^(?:0|[1-9]\d{0,8})\.\d{1,6}$/;
/** No number has two dots or a slash, so an address and a rate are texts. */
const ADDRESS = /^\d{1,3}\.\d{1,3}\.\d/;
/** A text that looks like a number in some notation, such as 0x1F or 1e3. */
const NUMBER_LIKE = /^[\d.+-][^/]*$/;
/** They have a meaning in YAML in other cases of letters too: `True`. */
const WORDS: ReadonlySet<string> = new Set(["null", "true", "false"]);

/** The value of a text without quotes: a number, a boolean or the text. */
export function plainScalar(text: string): string | number | boolean | typeof UNCLEAR {
  if (NUMBER_LIKE.test(text) && !ADDRESS.test(text))
    return WHOLE_NUMBER.test(text) || DECIMAL.test(text) ? Number(text) : UNCLEAR;
  if (text === "true") return true;
  if (text === "false") return false;
  return WORDS.has(text.toLowerCase()) ? UNCLEAR : text;
}
