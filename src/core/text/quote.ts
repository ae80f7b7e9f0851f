import { withoutCredentials } from "./passwords.ts";

const CHARS_MAX = 80;

/** A user's text in quotes for a message, without passwords, at most 80 characters of it. */
export function quote(text: string): string {
  return JSON.stringify(shorten(withoutCredentials(text)));
}

/** The first characters, 80 by default, with an ellipsis when there are more. */
export function shorten(text: string, max = CHARS_MAX): string {
  return text.length > max ? `${text.slice(0, max)}…` : text;
}

/** The value of an option in a message: a text or number as it is, and the kind of any other value. */
export function shownValue(value: unknown): string {
  if (typeof value === "string") return quote(value);
  if (typeof value === "bigint") return `${value}n`;
  if (typeof value === "function") return "a function";
  if (typeof value !== "object" || value === null) return String(value);
  return Array.isArray(value) ? "a list" : "an object";
}
