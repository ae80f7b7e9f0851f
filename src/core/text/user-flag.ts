/** User and password of curl: `-u user:password`, `--proxy-user "user:password"`, `["-u", "user:password"]`. */

/** The flag and what stands before its value, with the opening quote. */
export const USER_FLAG =
  /(?<![\w-])(--(?:proxy-)?user(?=[\s="'`\\])|-u)((?:=|\s{1,20}|\\{0,7}["'`]\s{0,20},\s{0,20})?\\{0,7}["'`]?)/gi;

/** The same as a field: `login=user:password`. */
export const USER_FIELD = /(?<![\w-])(log-?in|user|username|userpwd)((?:=|%3D)\\{0,7}["'`]?)/gi;
export const FIELD_VALUE = /(?=[a-z])[^\s"'`:\\&;,]{1,200}(?::(?!\/\/)|%3A(?!%2F|\/))[^\s"'`\\&;,]+/iy;

/** Other values of such flags: `1000:1000` (user and group of a process), `C:\x`, `https://x`, `+%H:%M`. */
const OTHER = String.raw`(?![+-]|\d{1,10}:\d{1,10}(?:[\s"'\x60\\]|$)|[a-z]:[\\/])`;
const WORD = userAndPassword(String.raw`[^\s"'\x60:\\]`, String.raw`(?:[^\s"'\x60]+|"[^"]*|'[^']*)`);
const ESCAPED = userAndPassword(String.raw`[^"'\x60:\\]`, String.raw`[^"'\x60\\]+`);
/** Keyed by the quote before the value. The same quote ends the value. */
const QUOTED: Readonly<Record<string, RegExp>> = {
  '"': userAndPassword(String.raw`[^":\\]`, String.raw`(?!")[^"\\]*(?:\\.[^"\\]*)*`),
  "'": userAndPassword("[^':]", "[^']+"),
  "`": userAndPassword(String.raw`[^\x60:]`, String.raw`[^\x60]+`),
};

/** Matches user and password at its `lastIndex`, up to the quote or space after them. */
export function userValueAfter(separator: string): RegExp {
  return separator.includes("\\") ? ESCAPED : (QUOTED[separator.at(-1) ?? ""] ?? WORD);
}

function userAndPassword(userCharacter: string, password: string): RegExp {
  return new RegExp(`${OTHER}${userCharacter}{1,200}:(?!//)${password}`, "isy");
}
