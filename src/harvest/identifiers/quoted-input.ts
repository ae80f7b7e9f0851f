import { isPrivateName } from "../../core/text/credentials.ts";
import { withoutUrlPassword } from "./web-url.ts";

const QUOTED_CHARS_MAX = 80;
const SHORTENED_CHARS_MAX = 200;
/** Secrets are searched in this many characters: a text may have a million of them, and few are shown. */
const SEARCHED_CHARS_MAX = 5000;
/** Control characters, line separators and characters that change the direction of text. */
const NOT_PRINTABLE = /[\p{Cc}\p{Cf}\p{Cs}\p{Zl}\p{Zp}]/gu;

/** Text of the user for messages: quoted, without passwords, shortened. Control characters are escaped. */
export function quotedInput(text: string): string {
  return JSON.stringify(cut(withoutSecrets(text), QUOTED_CHARS_MAX)).replace(NOT_PRINTABLE, escaped);
}

/** Text of the user without passwords, shortened. Control characters are replaced. */
export function shortened(text: string): string {
  return cut(withoutSecrets(text), SHORTENED_CHARS_MAX).replace(NOT_PRINTABLE, "\ufffd");
}

function withoutSecrets(text: string): string {
  return withoutUrlPassword(text.slice(0, SEARCHED_CHARS_MAX)).replace(
    /([?&;#]([^=&;\s]{1,100})=)[^&;\s]+/g,
    (all, start: string, name: string) => (isPrivateName(name) ? `${start}…` : all),
  );
}

function cut(text: string, charsMax: number): string {
  return text.length > charsMax ? `${text.slice(0, charsMax)}…` : text;
}

function escaped(character: string): string {
  return Array.from({ length: character.length }, (_, index) => codeOf(character, index)).join("");
}

function codeOf(text: string, index: number): string {
  return `\\u${text.charCodeAt(index).toString(16).padStart(4, "0")}`;
}
