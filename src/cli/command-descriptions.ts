/** The commands of a program as values, for shell completions, man pages and the reference. */
import { Command } from "commander";
import type { CommandModule, Program } from "./program.ts";

export interface ArgumentDescription {
  /** As in a usage line: `<target>`, `[role]`, `[file...]`. */
  readonly usage: string;
  readonly description: string;
}

export interface FlagDescription {
  /** As in help: `-o, --out <folder>`. */
  readonly flags: string;
  /** `--out`. */
  readonly long: string;
  /** Whether a value follows. */
  readonly takesValue: boolean;
  readonly description: string;
  /** As in help, without quotation marks; undefined if the flag has none. */
  readonly defaultText: string | undefined;
}

export interface CommandDescription {
  /** `["breaker", "open"]`. */
  readonly path: readonly string[];
  readonly summary: string;
  /** False if the command only groups its subcommands. */
  readonly runs: boolean;
  readonly arguments: readonly ArgumentDescription[];
  readonly flags: readonly FlagDescription[];
}

/** Loads all commands of a program, and describes them in the order of its help. */
export async function describeCommands(program: Program): Promise<readonly CommandDescription[]> {
  const described = program.commands.map(async ({ name, summary, load }) => describe([name], summary, await load()));
  return (await Promise.all(described)).flat();
}

function describe(path: readonly string[], summary: string, module: CommandModule): readonly CommandDescription[] {
  const command = new Command(path.at(-1));
  module.configure?.(command);
  const own: CommandDescription = {
    path,
    summary,
    runs: module.run !== undefined,
    arguments: command.registeredArguments.map(argument => {
      const name = `${argument.name()}${argument.variadic ? "..." : ""}`;
      return { usage: argument.required ? `<${name}>` : `[${name}]`, description: argument.description };
    }),
    flags: command.options.map(option => {
      const [, description = "", writtenDefault] = /^(.*?)(?: \(default: (.*)\))?$/s.exec(option.description) ?? [];
      // The default of a negated flag such as --no-telemetry is true. Help does not print it either.
      const defaultText =
        writtenDefault ?? option.defaultValueDescription ?? (option.negate ? undefined : option.defaultValue);
      return {
        flags: option.flags,
        long: option.long ?? option.flags,
        takesValue: option.required || option.optional,
        description,
        defaultText: defaultText === undefined ? undefined : String(defaultText).replace(/^"(.*)"$/, "$1"),
      };
    }),
  };
  return [own, ...(module.commands ?? []).flatMap(inner => describe([...path, inner.name], inner.summary, inner))];
}
