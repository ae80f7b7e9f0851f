/** Arguments of the scripts that measure and test: an invalid one ends the script with one sentence and exit code 2. */
import { type ParseArgsConfig, parseArgs } from "node:util";

export function scriptArguments<const Config extends ParseArgsConfig>(
  config: Config,
): ReturnType<typeof parseArgs<Config>> {
  try {
    return parseArgs(config);
  } catch (error) {
    const flags = Object.keys(config.options ?? {}).map(name => `--${name}`);
    return exitWith(`${(error as Error).message.split(". ")[0]}; known are ${flags.join(", ")}`);
  }
}

export function wholeNumber(name: string, text: string | undefined): number {
  const number = Number(text);
  const isValid = text !== "" && Number.isSafeInteger(number) && number >= 0;
  return isValid ? number : exitWith(`--${name} must be a whole number of 0 or more, got ${JSON.stringify(text)}`);
}

export function positiveNumber(name: string, text: string | undefined): number {
  const number = Number(text);
  const isValid = Number.isFinite(number) && number > 0;
  return isValid ? number : exitWith(`--${name} must be a number above 0, got ${JSON.stringify(text)}`);
}

export function oneOf<Value extends string>(name: string, text: string | undefined, values: readonly Value[]): Value {
  const found = values.find(value => value === text);
  return found ?? exitWith(`--${name} must be ${values.join(" or ")}, got ${JSON.stringify(text)}`);
}

function exitWith(message: string): never {
  process.stderr.write(`${message}\n`);
  process.exit(2);
}
