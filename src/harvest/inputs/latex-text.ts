/** LaTeX in the values of BibTeX as plain text: accents, symbols and escaped characters. */

/** The combining marks of accents. */
const MARKS: ReadonlyMap<string, string> = new Map(
  Object.entries({
    "`": "\u0300",
    "'": "\u0301",
    "^": "\u0302",
    "~": "\u0303",
    "=": "\u0304",
    u: "\u0306",
    ".": "\u0307",
    '"': "\u0308",
    r: "\u030a",
    H: "\u030b",
    v: "\u030c",
    d: "\u0323",
    c: "\u0327",
    k: "\u0328",
    b: "\u0331",
  }),
);
/** A letter has at most two, for example in Vietnamese. */
const MARKS_MAX = 2;

const GREEK_NAMES =
  "alpha beta gamma delta epsilon zeta eta theta iota kappa lambda mu nu xi omicron pi rho sigma tau upsilon phi chi psi omega";
const GREEK = [..."αβγδεζηθικλμνξοπρστυφχψω"];

/** Commands that stand for text. */
const SYMBOLS: ReadonlyMap<string, string> = new Map([
  ...Object.entries({
    ...{
      ss: "ß",
      ae: "æ",
      AE: "Æ",
      oe: "œ",
      OE: "Œ",
      aa: "å",
      AA: "Å",
      o: "ø",
      O: "Ø",
      l: "ł",
      L: "Ł",
      i: "ı",
      j: "ȷ",
    },
    ...{ dh: "ð", DH: "Ð", th: "þ", TH: "Þ", dj: "đ", DJ: "Đ" },
    ...{ textbackslash: "\\", textasciitilde: "~", textasciicircum: "^", textunderscore: "_", textbar: "|" },
    ...{ textless: "<", textgreater: ">", textdollar: "$", textdegree: "°", times: "×", pm: "±" },
    ...{ textendash: "–", textemdash: "—", textquoteleft: "‘", textquoteright: "’", ldots: "…", dots: "…" },
    ...{ TeX: "TeX", LaTeX: "LaTeX", newline: " ", par: " ", quad: " " },
  }),
  ...GREEK_NAMES.split(" ").flatMap((name, index): readonly [string, string][] => {
    const letter = GREEK[index] ?? "";
    return [
      [name, letter],
      [`${name.charAt(0).toUpperCase()}${name.slice(1)}`, letter.toUpperCase()],
    ];
  }),
]);

/** A command with the spaces that end its name, a command of one character, a character with a meaning, or other text. */
const TOKEN = /\\([A-Za-z]+)\s*|\\(.)|[{}~$]|\s+|[^\\{}~$\s]+/gsu;

/** The text of a title or name. Unknown commands are dropped, and their arguments kept. */
export function latexText(latex: string): string {
  let text = "";
  /** The accents of the next letter. */
  let accents: readonly string[] = [];
  const add = (added: string) => {
    text += accents.length === 0 ? added : accented(added, accents);
    accents = [];
  };
  for (const [token, word, character] of latex.matchAll(TOKEN)) {
    const command = word ?? character;
    if (command !== undefined) {
      if (MARKS.has(command)) accents = [command, ...accents].slice(0, MARKS_MAX);
      else if (word !== undefined) {
        const symbol = SYMBOLS.get(word);
        if (symbol !== undefined) add(symbol);
      } else add(characterOf(command));
    } else if (token === "}") {
      // An accent without a letter, as in `\~{}`, stands for itself.
      text += accents.filter(accent => /^[~^]$/.test(accent)).join("");
      accents = [];
    } else if (token === "~" || /^\s/.test(token)) {
      if (accents.length === 0) text += " ";
    } else if (token !== "{" && token !== "$") add(token);
  }
  return text.replace(/\s+/g, " ").trim();
}

/** A URL, DOI or other identifier: a tilde is a tilde, also if it is escaped. */
export function latexIdentifier(latex: string): string {
  return latex
    .replace(
      /\\(?:([A-Za-z]+)\s*|([%#&$_{}~]))/g,
      (_, word: string | undefined, character: string | undefined) => character ?? SYMBOLS.get(word ?? "") ?? "",
    )
    .replace(/[{}]/g, "")
    .replace(/\s+/g, " ")
    .trim();
}

/** `\,` is a narrow space, `\-` a possible hyphen, `\(` begins a formula; any other character stands for itself. */
function characterOf(character: string): string {
  if (/[\s\\,;:]/.test(character)) return " ";
  return /[-/!()[\]@]/.test(character) ? "" : character;
}

/** The text with accents on its first letter. */
function accented(text: string, accents: readonly string[]): string {
  const [first = "", ...rest] = text;
  if (!/\p{L}/u.test(first)) return text;
  // With an accent, the dotless letters lose nothing else than their dot.
  const letter = { ı: "i", ȷ: "j" }[first] ?? first;
  const marks = accents.map(accent => MARKS.get(accent) ?? "").join("");
  return `${letter}${marks}`.normalize("NFC") + rest.join("");
}
