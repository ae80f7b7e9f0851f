import { styleText } from "node:util";
import type { Io } from "../program.ts";

/** Red: refused or slowed down. Yellow: waiting or on trial. Green: not limited. */
export type Colour = "red" | "yellow" | "green";

/** Colours text on a terminal, unless NO_COLOR or TERM=dumb is set (https://no-color.org). */
export function painter({ stdout, env }: Pick<Io, "stdout" | "env">): (colour: Colour, text: string) => string {
  const isColoured = stdout.isTTY === true && !env["NO_COLOR"] && env["TERM"] !== "dumb";
  // Node would validate the streams of the process instead of the output that was passed in.
  return (colour, text) => (isColoured ? styleText(colour, text, { validateStream: false }) : text);
}
