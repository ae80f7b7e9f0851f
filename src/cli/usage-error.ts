import { ConfigError, type ConfigProblem } from "../errors.ts";

/** A ConfigError about one flag or argument: `where` is its name as the user types it. */
export function usageError(where: string, message: string, options: ErrorOptions = {}): ConfigError {
  return new ConfigError([{ where, path: "", message }], options);
}

/** The problem of a value that is not a whole number from `min` to `max`; undefined if it is one. */
export function wholeNumberProblem(value: unknown, min: number, max = Number.MAX_SAFE_INTEGER): string | undefined {
  const number = Number(value);
  if (Number.isSafeInteger(number) && number >= min && number <= max && String(value).trim() !== "") return undefined;
  const range = max === Number.MAX_SAFE_INTEGER ? `of at least ${min}` : `from ${min} to ${max}`;
  return `${JSON.stringify(value)} is not a whole number ${range}`;
}

/** Throws a ConfigError that names the flag. */
export function wholeNumberFlag(flag: string, value: unknown, min: number, max?: number): number {
  const problem = wholeNumberProblem(value, min, max);
  if (problem !== undefined) throw usageError(flag, problem);
  return Number(value);
}

type Readers<T> = { readonly [K in keyof T]: () => T[K] };

/** Calls all readers. If some fail, throws one ConfigError that has the problems of all of them, in their order. */
export function readAll<T extends object>(readers: Readers<T>): T {
  const problems: ConfigProblem[] = [];
  const values = Object.entries<() => unknown>(readers).map(([name, read]) => {
    try {
      return [name, read()] as const;
    } catch (error) {
      if (!(error instanceof ConfigError)) throw error;
      problems.push(...error.problems);
      return [name, undefined] as const;
    }
  });
  if (problems.length > 0) throw new ConfigError(problems);
  return Object.fromEntries(values) as T;
}
