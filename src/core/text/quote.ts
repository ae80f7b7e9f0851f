import { withoutCredentials } from "./passwords.ts";

const CHARS_MAX = 80;

/** A user's text in quotes for a message, without passwords, at most 80 characters of it. */
export function quote(text: string): string {
  return JSON.stringify(shorten(withoutCredentials(text)));
}

/** The first 80 characters, with an ellipsis when there are more. */
export function shorten(text: string): string {
  return text.length > CHARS_MAX ? `${text.slice(0, CHARS_MAX)}…` : text;
}
