import { styleText } from "node:util";
import type { Io } from "../program.ts";

/** What colours mean here: trouble, on the way out of it, well. */
export type Colour = "red" | "yellow" | "green";

/** Colours text for a terminal that shows colours, and leaves it alone for everybody else (https://no-color.org). */
export function painter({ stdout, env }: Pick<Io, "stdout" | "env">): (colour: Colour, text: string) => string {
  const isColoured = stdout.isTTY === true && !env["NO_COLOR"] && env["TERM"] !== "dumb";
  // Whether the stream is a terminal was asked already; Node would ask the streams of the process.
  return (colour, text) => (isColoured ? styleText(colour, text, { validateStream: false }) : text);
}
