import { type Command, Help } from "commander";
import { formatPairs } from "./output/table.ts";

/** A description in a narrower column than this is printed below its flag, with the whole width of the terminal. */
const DESCRIPTION_COLUMNS_MIN = 30;
const COLUMNS_DEFAULT = 80;

/** Help that fits terminals of 40 columns and more. Commander alone does not wrap beside long flags. */
export class ProgramHelp extends Help {
  override minWidthToWrap = 16;

  override formatItem(term: string, termWidth: number, description: string, helper: Help): string {
    const columns = this.helpWidth ?? COLUMNS_DEFAULT;
    if (description === "" || columns - termWidth - 4 >= DESCRIPTION_COLUMNS_MIN)
      return super.formatItem(term, termWidth, description, helper);
    return `  ${term}\n${indented(this.boxWrap(description, columns - 4), 4)}`;
  }

  override commandUsage(command: Command): string {
    const title = "Usage: ".length;
    const usage = this.boxWrap(super.commandUsage(command), (this.helpWidth ?? COLUMNS_DEFAULT) - title);
    return indented(usage, title).trimStart();
  }
}

/** Names and descriptions with a title, such as the exit codes. */
export function helpSection(
  title: string,
  pairs: readonly (readonly [name: string, description: string])[],
  columns = COLUMNS_DEFAULT,
): string {
  return `\n${title}:\n${indented(formatPairs(pairs, { columns: columns - 2 }).trimEnd(), 2)}\n`;
}

function indented(text: string, spaces: number): string {
  return text.replace(/^/gm, " ".repeat(spaces));
}
