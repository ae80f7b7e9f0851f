import type { Colour } from "../output/colour.ts";

export const STATE_COLOURS = { open: "red", half_open: "yellow", closed: "green" } as const satisfies Record<
  string,
  Colour
>;
