/**
 * Removes the values of credentials that a text names: in query strings, headers, JSON, maps, XML, flags and lists. No
 * expression can match one character in two ways, so the time grows with the length of the text only.
 */
import { isCredentialName, isPrivateName } from "./credentials.ts";
import { isSpacedValue } from "./spaced-value.ts";
import { FIELD_VALUE, USER_FIELD, USER_FLAG, userValueAfter } from "./user-flag.ts";

/** A quote, also within JSON in JSON, in a URL or in HTML. */
const QUOTE = String.raw`(?:\\{0,7}["'\x60]|%22|%27|&quot;|&#3[49];)`;
/**
 * A name and what separates it from its value. Hosts with a port, as in `redis://auth-store:6379`, are no names. The value
 * may be on the next line, also in a block of YAML (`|`). The spaces are bounded, because `20` of `%20` is a name too.
 */
const NAMED = new RegExp(
  String.raw`(?<![\w-]|\/\/|@)((?:api |access )?[\w-]+)((?:\]|\[\d*\]|%5D|%5B\d*%5D){0,3}${QUOTE}?(?:\s|%20){0,60}(?:[=-]>|[:=]|%3[AD]|%253[AD])(?:\s|%20){0,200}(?:[|>][+-]?\s+)?)`,
  "gi",
);
/** The value in its quotes (also escaped quotes of JSON within JSON); without quotes, up to the next separator. */
const VALUE =
  /\\+["'][^"']*["']?|"[^"\\]*(?:\\.[^"\\]*)*"?|'[^'\\]*(?:\\.[^'\\]*)*'?|`[^`]*`?|&quot;[^&]*|[^\s&;,"'#)<]+/sy;
const LINE = /[^\r\n]+/y;
/** A value that looks like the next name and its separator. */
const NAME_AS_VALUE = /^[\w-]{1,40}[:=]$/;
/** Headers whose value may have several parameters, so the rest of the line is removed. */
const WHOLE_LINE_HEADERS: ReadonlySet<string> = new Set([
  "authorization",
  "proxy-authorization",
  "cookie",
  "set-cookie",
]);
/** In prose these words have other meanings: only `key=value` is redacted, and `code=` only in a query. */
const ORDINARY_IN_PROSE: ReadonlySet<string> = new Set(
  "assertion auth code cookies credential credentials key mail pass session sid sig ticket verifier".split(" "),
);

/** The opening tag of XML: `<api_key>`. */
const ELEMENT =
  /(?:<|&lt;)([a-z][\w.:-]{0,100})((?:\s[^<>&]{0,500})?(?:>|&gt;)(?:\s{0,100}<!\[CDATA\[)?)(?=\s*[^\s<&])/gi;
/** Up to the next tag. Without one, `<password>` may be a placeholder in a sentence, so only a word without a space counts. */
const ELEMENT_TEXT = /[^<&\]]+(?=[<&\]])|[^\s<&\]]+/y;
/** A flag of a command line and the space after it: `--api-key secret`. A placeholder such as `<value>` is no value. */
const FLAG = /(?<![\w-])--?([a-z][\w-]*)(\s+)(?=[^\s<[(-])/gi;
const WORD = /"[^"]*"?|'[^']*'?|[^\s"'`]+/y;
/** Words that follow the name of a flag in a sentence: `--token needs a value`. */
const AFTER_FLAG: ReadonlySet<string> = new Set(
  [
    "a again also an and are as at be because before but by can cannot changes do does each else expects flag for from",
    "given has have if in instead into is it itself may means must names needs no nor not of on once only option or",
    "reads requires says sets should so takes than that the then there this to together too twice unless until value",
    "was were when where which while will with without would",
  ]
    .join(" ")
    .split(" "),
);
/** A name in a list, up to the value after it: `["x-api-key", "secret"]`, `'--token', 'secret'`. */
const QUOTED_ITEM = new RegExp(
  String.raw`(?<=["'\x60;]|%2[27])(-{0,2}[a-z][\w-]*)(${QUOTE}\s{0,100}(?:,|%2C)\s{0,100}${QUOTE})`,
  "gi",
);
const QUOTED_VALUE = /[^"'`\\%&]+/y;
/** The same in a list that was joined: `x-api-key,secret`. */
const JOINED_ITEM = /(?<![\w-])([a-z][\w-]*)(,)/gi;
const JOINED_VALUE = /[^\s,;"'`]+/y;
/** Names of fields and other words, in lower case. A random key has digits or capital letters too. */
const ORDINARY_VALUE = /^-{0,2}[a-z]+(?:[ _./-][a-z]+)*[.:!?)]?$/;

/** A name and its value with nothing but spaces or tabs between them: `api_key 3f9c1a`, `the token is 3f9c1a`. */
const SPACED = /(?<![\w-]|\/\/|[@.])((?:api |access )?[\w-]+)((?:[ \t]|\\t|%20|%09)+(?:(?:is|was)[ \t]+)?)/gi;
/** Separators are excluded, so that each character is read for one name only. */
const SPACED_VALUE = /"[^"]*"?|'[^']*'?|`[^`]*`?|(?:[^\s"'`,;()<>\\%]|%(?!20|09))+/y;

/** A name and its value in the name of a file or folder: `token-3f9c1a.db`, `secret_3f9c1a/`. */
const FILE_NAME = /(?<![a-z\d])(api[_-]?key|token|secret|passw(?:or)?d)([-_])/gi;
const FILE_NAME_VALUE = /[a-z\d]+/iy;

/** The command of Redis that logs in. A server that does not know it quotes its arguments: user and password. */
const REDIS_AUTH = /\b(AUTH)(["'`]?(?:, with args beginning with:)?[ \t]{1,5})/g;
const REDIS_ARGUMENTS = /(?:(?:"[^"]*"|'[^']*'|`[^`]*`)(?:,?[ \t]{0,5})){1,2}|[^\s"'`]+(?:[ \t][^\s"'`]+)?/y;

/** A quick test. It matches every text that one of the notations matches. */
export const MAY_NAME_SECRET =
  /[=:,]|->|%3[AD]|%253[AD]|%2C|[<;][a-z]|(?<![\w-])--?[a-z]|AUTH|[ydnt][-_][a-z\d]*\d|[ \t]\S*\d|\\t|%20|%09/i;

/** The values that may follow a name in one notation. */
interface Notation {
  /** A name, and what stands between it and its value. It does not match the value, which may be the next name. */
  readonly names: RegExp;
  /** @default isPrivateName */
  readonly isName?: (name: string) => boolean;
  readonly value: (name: string, separator: string) => RegExp;
  readonly isSecret: (found: Found) => boolean;
}

interface Found {
  readonly name: string;
  readonly separator: string;
  readonly value: string;
  /** The character before the name. */
  readonly before: string | undefined;
}

const NOTATIONS: readonly Notation[] = [
  {
    names: NAMED,
    value: name => (WHOLE_LINE_HEADERS.has(name.toLowerCase()) ? LINE : VALUE),
    isSecret: found => !isProse(found) || isSpacedValue(found.name, found.value),
  },
  { names: ELEMENT, value: () => ELEMENT_TEXT, isSecret: ({ name }) => isSecretName(name) },
  {
    names: FLAG,
    value: () => WORD,
    isSecret: ({ value }) => !AFTER_FLAG.has(value.toLowerCase().replace(/\W$/, "")),
  },
  { names: QUOTED_ITEM, value: () => QUOTED_VALUE, isSecret: isListedSecret },
  { names: JOINED_ITEM, value: () => JOINED_VALUE, isSecret: isListedSecret },
  { names: USER_FIELD, isName: () => true, value: () => FIELD_VALUE, isSecret: () => true },
  { names: FILE_NAME, value: () => FILE_NAME_VALUE, isSecret: ({ name, value }) => isSpacedValue(name, value) },
  { names: USER_FLAG, isName: () => true, value: (_, separator) => userValueAfter(separator), isSecret: () => true },
  {
    names: REDIS_AUTH,
    isName: () => true,
    value: () => REDIS_ARGUMENTS,
    isSecret: ({ value }) => /^["'`]/.test(value) || isSpacedValue("password", value),
  },
  {
    names: SPACED,
    isName: isCredentialName,
    value: () => SPACED_VALUE,
    isSecret: ({ name, value }) => isSpacedValue(name, value),
  },
];

export function withoutNamedSecrets(text: string): string {
  return NOTATIONS.reduce(withoutValues, text);
}

function withoutValues(text: string, { names, isName = isPrivateName, value: valueAfter, isSecret }: Notation): string {
  let redacted = "";
  let at = 0;
  for (const { 0: matched, 1: name = "", 2: separator = "", index } of text.matchAll(names)) {
    // Cheap tests first: nearly all names are ordinary.
    if (index < at || !isName(name)) continue;
    const expression = valueAfter(name, separator);
    const start = index + matched.length;
    expression.lastIndex = start;
    const value = expression.exec(text)?.[0];
    // Without a value, the next name would be taken for it: `key=` and then `authorization: Bearer …`.
    if (value !== undefined && NAME_AS_VALUE.test(value) && isPrivateName(value.slice(0, -1))) continue;
    if (value === undefined || value.startsWith("…") || !isSecret({ name, separator, value, before: text[index - 1] }))
      continue;
    redacted += `${text.slice(at, start)}…`;
    at = start + value.length;
  }
  return redacted + text.slice(at);
}

/** Whether the name means a secret in prose too. */
function isSecretName(name: string): boolean {
  return !ORDINARY_IN_PROSE.has(name.toLowerCase());
}

function isListedSecret({ name, value }: Found): boolean {
  return isSecretName(name) && (name.startsWith("-") || !ORDINARY_VALUE.test(value));
}

function isProse({ name, separator, before }: Found): boolean {
  if (!ORDINARY_IN_PROSE.has(name.toLowerCase())) return false;
  if (name.toLowerCase() === "code") return before !== "?" && before !== "&";
  return separator !== "=" && separator.toLowerCase() !== "%3d";
}
