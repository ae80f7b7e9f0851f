import { type CommandDescription, describeCommands } from "../../src/cli/command-descriptions.ts";
import { EXIT_CODE_MEANINGS, type Program } from "../../src/cli/program.ts";
import { sentence } from "./markdown.ts";

/** The man page of a program, from the definitions of its commands. */
export async function manPage(program: Program): Promise<string> {
  const commands = await describeCommands(program);
  const { name, summary } = program;
  const head = [`.TH ${name.toUpperCase()} 1`, ".SH NAME", `${roff(name)} \\- ${roff(lowerFirst(summary))}`];
  const synopsis = [".SH SYNOPSIS", `.B ${roff(name)}`, roff("<command> [flags] [arguments]")];
  const description = [
    ".SH DESCRIPTION",
    roff(`${sentence(summary)} Results are printed on stdout, messages and progress on stderr.`),
    roff(`"${name} help <command>" prints the help of one command.`),
  ];
  const exit = [
    ".SH EXIT STATUS",
    ...EXIT_CODE_MEANINGS.flatMap(([code, meaning]) => [".TP", String(code), roff(sentence(meaning))]),
  ];
  const sections = commands.filter(({ runs }) => runs).flatMap(command => commandSection(name, command));
  return `${[...head, ...synopsis, ...description, ".SH COMMANDS", ...sections, ...exit].join("\n")}\n`;
}

function commandSection(program: string, { path, summary, arguments: args, flags }: CommandDescription): string[] {
  const usage = [program, ...path, ...(flags.length > 0 ? ["[flags]"] : []), ...args.map(({ usage }) => usage)];
  return [
    `.SS "${roff(usage.join(" "))}"`,
    roff(sentence(summary)),
    ...args.flatMap(({ usage: text, description }) => entry(text, description)),
    ...flags.flatMap(({ flags: text, description, defaultText }) =>
      entry(text, defaultText === undefined ? description : `${description} (default: ${defaultText})`),
    ),
  ];
}

function entry(term: string, description: string): string[] {
  return [".TP", `.B ${roff(term)}`, roff(description === "" ? " " : sentence(description))];
}

/** Escapes text for roff, so that hyphens can be copied and a line that begins with a dot is not read as a request. */
function roff(text: string): string {
  return (
    text
      .replaceAll("\\", "\\e")
      .replaceAll("-", "\\-")
      .replaceAll('"', "\\(dq")
      // Not every renderer expects UTF-8.
      .replaceAll(
        /[^\n -~]/gu,
        character => `\\[u${character.codePointAt(0)?.toString(16).toUpperCase().padStart(4, "0")}]`,
      )
      .replace(/^([.'])/, "\\&$1")
  );
}

function lowerFirst(text: string): string {
  return text.charAt(0).toLowerCase() + text.slice(1).replace(/\.$/, "");
}
