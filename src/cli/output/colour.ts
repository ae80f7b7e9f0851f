import { styleText } from "node:util";
import type { Io, Output } from "../program.ts";

/** Red: refused or slowed down. Yellow: waiting or on trial. Green: not limited. */
export type Colour = "red" | "yellow" | "green";

/** Whether an output is coloured: on a terminal, unless NO_COLOR or TERM=dumb is set (https://no-color.org). */
export function hasColour({ isTTY }: Pick<Output, "isTTY">, env: Io["env"]): boolean {
  return isTTY === true && !env["NO_COLOR"] && env["TERM"] !== "dumb";
}

/** Colours text on stdout, if that is coloured. */
export function painter({ stdout, env }: Pick<Io, "stdout" | "env">): (colour: Colour, text: string) => string {
  const isColoured = hasColour(stdout, env);
  // Node would validate the streams of the process instead of the output that was passed in.
  return (colour, text) => (isColoured ? styleText(colour, text, { validateStream: false }) : text);
}
