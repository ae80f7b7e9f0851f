import { languageTag } from "./language-tag.ts";
import type { ObjectKind } from "./statement.ts";

/** A term as N-Triples writes it. */
export function formatTerm(text: string, kind: ObjectKind, language = "", datatype = ""): string {
  if (kind === "triple" || kind === "blank") return text;
  if (kind === "iri") return formatIri(text);
  const tag = languageTag(language);
  if (tag !== "") return `"${escapedText(text)}"@${tag}`;
  return datatype === "" ? `"${escapedText(text)}"` : `"${escapedText(text)}"^^${formatIri(datatype)}`;
}

function formatIri(iri: string): string {
  return `<${iri.replace(IRI_ESCAPED, unicodeEscape)}>`;
}

const IRI_ESCAPED = /[\p{Cc} <>"{}|^`\\]/gu;
const TEXT_ESCAPED = /["\\\p{Cc}]/gu;
const ESCAPES: Readonly<Record<string, string>> = { '"': '\\"', "\\": "\\\\", "\n": "\\n", "\r": "\\r", "\t": "\\t" };

function escapedText(text: string): string {
  return text.replace(TEXT_ESCAPED, letter => ESCAPES[letter] ?? unicodeEscape(letter));
}

function unicodeEscape(letter: string): string {
  return `\\u${letter.charCodeAt(0).toString(16).toUpperCase().padStart(4, "0")}`;
}
