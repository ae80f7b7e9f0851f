import { isPrivateName } from "../../core/text/credentials.ts";
import { withoutUrlPassword } from "./web-url.ts";

const QUOTED_CHARS_MAX = 80;
const SHORTENED_CHARS_MAX = 200;

/** Text of the user for messages: quoted, without passwords and control characters, shortened. */
export function quotedInput(text: string): string {
  return JSON.stringify(shortened(text, QUOTED_CHARS_MAX));
}

/** Text of the user without passwords, shortened. */
export function shortened(text: string, charsMax = SHORTENED_CHARS_MAX): string {
  const safe = withoutUrlPassword(text).replace(
    /([?&;#]([^=&;\s]{1,100})=)[^&;\s]+/g,
    (all, start: string, name: string) => (isPrivateName(name) ? `${start}…` : all),
  );
  return safe.length > charsMax ? `${safe.slice(0, charsMax)}…` : safe;
}
