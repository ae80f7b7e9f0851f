import { shorten } from "../core/text/quote.ts";
import type { ConfigProblem } from "../errors.ts";

/** Thousands of problems in one file usually have one cause. Problems after the first 20 are only counted. */
const SHOWN_MAX = 20;
/** Enough for the path of every setting whose host name is valid. */
const PATH_CHARS_MAX = 400;

/** The first problems of one source, and how many there are in all. */
export class ProblemList {
  readonly #shown: ConfigProblem[] = [];
  #count = 0;

  /** `make` is called only for problems that are shown, because finding a similar known key takes time. */
  add(make: () => ConfigProblem): void {
    this.#count += 1;
    if (this.#shown.length >= SHOWN_MAX) return;
    const problem = make();
    this.#shown.push({ ...problem, path: shorten(problem.path, PATH_CHARS_MAX) });
  }

  get problems(): readonly ConfigProblem[] {
    const count = this.#count - this.#shown.length;
    if (count === 0) return this.#shown;
    const message = `and ${count} more problem${count === 1 ? "" : "s"} (${this.#count} in all)`;
    // The file without its line, if the problems are those of a file.
    const where = this.#shown[0]?.where.replace(/:\d+$/, "") ?? "";
    return [...this.#shown, { where, path: "", message, count }];
  }
}
