import type { Io } from "../program.ts";

/** Prints one JSON document on stdout. */
export function printJson({ stdout }: Pick<Io, "stdout">, value: unknown): void {
  stdout.write(`${JSON.stringify(value, undefined, 2)}\n`);
}
