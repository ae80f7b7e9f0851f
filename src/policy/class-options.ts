/** Checks of the options that a program passes to a hub, a limiter or a registry of breakers. */
import { optionHint } from "../core/text/nearest.ts";
import { shownValue } from "../core/text/quote.ts";
import { ConfigError, type ConfigProblem } from "../errors.ts";

/**
 * The options that a program passes and that do not exist, each with a suggestion. One whose value is undefined is no
 * problem, because libraries pass such options on for callers that did not set them.
 * @param path the keys above the options, joined by dots
 */
export function unknownOptions(given: object, known: readonly string[], where: string, path = ""): ConfigProblem[] {
  return Object.entries(given)
    .filter(([option, value]) => value !== undefined && !known.includes(option))
    .map(([option]) => ({
      where,
      path: path === "" ? option : `${path}.${option}`,
      message: `unknown option: ${optionHint(option, known)}`,
    }));
}

/** The options about a store that is away, of a hub or a limiter. */
export function storeAwayProblems(
  { whenStoreAway, fleetSize }: { readonly whenStoreAway?: unknown; readonly fleetSize?: unknown },
  where: string,
): ConfigProblem[] {
  const problems: ConfigProblem[] = [];
  const add = (path: string, expected: string, found: unknown) =>
    problems.push({ where, path, message: `expected ${expected}, found ${shownValue(found)}` });
  if (whenStoreAway !== undefined && !["share", "wait", "refuse"].includes(whenStoreAway as string))
    add("whenStoreAway", '"share", "wait" or "refuse"', whenStoreAway);
  if (fleetSize !== undefined && !(Number.isSafeInteger(fleetSize) && (fleetSize as number) >= 1))
    add("fleetSize", "a whole number of at least 1", fleetSize);
  return problems;
}

export function throwIfAny(problems: readonly ConfigProblem[]): void {
  if (problems.length > 0) throw new ConfigError(problems);
}
