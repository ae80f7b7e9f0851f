import { readFileSync } from "node:fs";
import { join } from "node:path";
import { inflateSync } from "node:zlib";
import lunr from "lunr";

interface SearchData {
  readonly rows: readonly { readonly name: string; readonly url: string }[];
  readonly index: object;
}

/** The words that the search of the site does not find. It asks the index in the way that the page does. */
export async function searchProblems(folder: string, words: readonly string[]): Promise<readonly string[]> {
  const script = readFileSync(join(folder, "assets/search.js"), "utf8");
  const [, packed] = /^window\.searchData = "(.*)"/.exec(script) ?? [];
  if (packed === undefined) return ["assets/search.js has another form than expected"];
  const { rows, index: serialized } = JSON.parse(inflateSync(Buffer.from(packed, "base64")).toString()) as SearchData;
  const index = lunr.Index.load(serialized);
  return words.flatMap(word => {
    const found = index.search(`${word} ${word}*`).map(({ ref }) => rows[Number(ref)]?.name);
    return found.length > 0 ? [] : [`the search does not find ${word}`];
  });
}
