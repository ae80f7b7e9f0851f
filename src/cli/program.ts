import { Command, CommanderError, type Help } from "commander";
import { redactedText } from "../core/text/redaction.ts";
import { isDocstokgError } from "../errors.ts";
import { PACKAGE_VERSION } from "../http/package-version.ts";
import type { Time } from "../time/time.ts";
import { ExitCode } from "./exit-code.ts";
import { helpSection, ProgramHelp } from "./help-format.ts";
import { printable } from "./output/printable.ts";
import { terminalWidth } from "./output/table.ts";
import { usageError } from "./usage-error.ts";

/** The parts of the process that a command uses. Passed in, so that tests can run a command without a process. */
export interface Io {
  readonly argv: readonly string[];
  readonly env: Readonly<Record<string, string | undefined>>;
  readonly stdout: Output;
  readonly stderr: Output;
  /** Read only by a command whose arguments ask for it. */
  readonly stdin?: AsyncIterable<Uint8Array | string> | undefined;
  /** Calls the listener at each SIGINT or SIGTERM, until the returned function is called. */
  readonly onInterrupt?: ((listener: () => void) => () => void) | undefined;
  /** Calls the listener at each SIGHUP that asks for a reload, until the returned function is called. */
  readonly onHangup?: ((listener: () => void) => () => void) | undefined;
  /** Ends the process without waiting for the command: a second Ctrl-C. */
  readonly exit?: ((code: ExitCode) => void) | undefined;
  /** Aborted when the reader of stdout has closed it. */
  readonly outputClosed?: AbortSignal | undefined;
  /** @default the clocks of this machine */
  readonly time?: Time | undefined;
}

export interface Output {
  /**
   * Returns false if the reader is slower than the writer. `onWritten` is called when the text is written, or when that
   * has failed.
   */
  write(text: string, onWritten?: () => void): unknown;
  readonly isTTY?: boolean | undefined;
  readonly columns?: number | undefined;
  readonly rows?: number | undefined;
}

/** The parsed flags of a command, by their names in camelCase. */
export type Flags = Readonly<Record<string, unknown>>;

/** A command of a program. Its module is imported when the command is called, or when its help is printed. */
export interface CliCommand {
  readonly name: string;
  readonly summary: string;
  readonly load: () => Promise<CommandModule>;
}

/** Runs a command with its arguments and flags. */
export type RunCommand = (args: readonly string[], flags: Flags, io: Io) => Promise<ExitCode>;

/** The content of a command's module. */
export interface CommandModule {
  /** Declares arguments and flags on a new commander command. */
  readonly configure?: (command: Command) => void;
  /** Absent if the command only groups its subcommands. */
  readonly run?: RunCommand;
  readonly commands?: readonly Subcommand[];
}

/** A subcommand, in the same module as its command. */
export interface Subcommand extends CommandModule {
  readonly name: string;
  readonly summary: string;
}

export interface Program {
  readonly name: string;
  readonly summary: string;
  readonly commands: readonly CliCommand[];
}

/** Each exit code and its meaning, for help, man pages and the reference. */
export const EXIT_CODE_MEANINGS = [
  [ExitCode.ok, "success"],
  [ExitCode.partial, "failure: some work failed, or a store, file or disk cannot be used"],
  [ExitCode.usage, "usage or configuration error; nothing was done"],
  [ExitCode.interrupted, "interrupted by Ctrl-C or SIGTERM"],
] as const;

/** Runs a command line and returns its exit code. Usage and configuration errors are messages, never exceptions. */
export async function runProgram(program: Program, io: Io): Promise<ExitCode> {
  const commandLine = new CommandLine(program, io);
  try {
    return await commandLine.run();
  } catch (error) {
    if (error instanceof CommanderError) return error.exitCode === 0 ? ExitCode.ok : ExitCode.usage;
    const code = exitCodeOfError(error);
    if (code === undefined) throw error;
    const lines = (error as Error).message.split("\n").map(printable);
    io.stderr.write(`${program.name}: ${lines.join("\n")}\n`);
    return code;
  }
}

/** Undefined for a defect of the program, whose stack trace is needed. */
function exitCodeOfError(error: unknown): ExitCode | undefined {
  if (isDocstokgError(error)) {
    if (error.code === "DOCSTOKG_CONFIG") return ExitCode.usage;
    // Results from before the failure are kept.
    if (error.code === "DOCSTOKG_DOWNLOAD" || error.code === "DOCSTOKG_STORE") return ExitCode.partial;
  }
  // A full disk or a missing permission: the message of the operating system is enough.
  const isSystemError = error instanceof Error && "syscall" in error && "code" in error;
  return isSystemError ? ExitCode.partial : undefined;
}

class HelpfulCommand extends Command {
  override createCommand(name?: string): Command {
    return new HelpfulCommand(name);
  }

  override createHelp(): Help {
    return Object.assign(new ProgramHelp(), this.configureHelp());
  }
}

/** The commander tree of a program. Commands are listed by name and summary until one of them is loaded. */
class CommandLine {
  readonly #io: Io;
  readonly #root: Command;
  readonly #unloaded = new Map<Command, CliCommand>();
  #exitCode: ExitCode = ExitCode.ok;

  constructor(program: Program, io: Io) {
    this.#io = io;
    const exitCodes = EXIT_CODE_MEANINGS.map(([code, meaning]) => [String(code), meaning] as const);
    this.#root = new HelpfulCommand(program.name)
      .description(program.summary)
      .version(PACKAGE_VERSION, "-V, --version", "print the version")
      .helpOption("-h, --help", "print this help")
      .helpCommand(false)
      .addHelpText("after", () => helpSection("Exit codes", exitCodes, terminalWidth(io.stdout)))
      .showHelpAfterError(usageHint([program.name]))
      .exitOverride()
      .configureOutput({
        writeOut: text => io.stdout.write(text),
        writeErr: text => io.stderr.write(text),
        // Not the width of `process.stdout`, which commander would read. Undefined means 80 columns.
        getOutHelpWidth: () => terminalWidth(io.stdout) as number,
        getErrHelpWidth: () => terminalWidth(io.stderr) as number,
        // Commander quotes an unknown option with its value: `--api-key=…`.
        outputError: (text, write) => write(redactedText(text).replace(/^error:/, `${program.name}:`)),
      })
      .hook("preSubcommand", (_, command) => this.#load(command));
    for (const command of program.commands) {
      this.#unloaded.set(this.#add(this.#root, command), command);
    }
    // The built-in help command of commander is missing from the list of known commands, and so from suggestions.
    this.#root
      .command("help [command...]")
      .description("print help for the program or for one command")
      .action((names: readonly string[]) => this.#help(names));
  }

  async run(): Promise<ExitCode> {
    await this.#root.parseAsync([...this.#io.argv], { from: "user" });
    return this.#exitCode;
  }

  async #help(names: readonly string[]): Promise<void> {
    let command = this.#root;
    for (const name of names) {
      const inner = command.commands.find(candidate => candidate.name() === name);
      if (inner === undefined) return command.error(`error: unknown command '${names.join(" ")}'`);
      await this.#load(inner);
      command = inner;
    }
    command.help();
  }

  async #load(command: Command): Promise<void> {
    const unloaded = this.#unloaded.get(command);
    if (unloaded === undefined) return;
    this.#unloaded.delete(command);
    this.#define(command, await unloaded.load());
  }

  #add(parent: Command, { name, summary }: Pick<CliCommand, "name" | "summary">): Command {
    const command = parent.command(name).description(summary).helpCommand(false);
    return command.showHelpAfterError(usageHint(pathOf(command)));
  }

  #define(command: Command, { configure, run, commands = [] }: CommandModule): void {
    configure?.(command);
    // Commander prints the default of a flag as JSON: (default: "32").
    for (const option of command.options)
      if (typeof option.defaultValue === "string") option.defaultValueDescription ??= option.defaultValue;
    refuseRepeatedFlags(command);
    for (const subcommand of commands) this.#define(this.#add(command, subcommand), subcommand);
    if (run === undefined) return;
    command.action(async () => {
      this.#exitCode = await run(command.args, command.optsWithGlobals(), this.#io);
    });
  }
}

/** Commander keeps the last value of a flag: of two lists of works, the first would be dropped. */
function refuseRepeatedFlags(command: Command): void {
  for (const option of command.options) {
    if (option.isBoolean()) continue;
    let given: string | undefined;
    command.on(`option:${option.name()}`, (value: string) => {
      const isRepeatable = Array.isArray(command.getOptionValue(option.attributeName()));
      if (given !== undefined && given !== value && !isRepeatable)
        throw usageError(option.long ?? option.flags, "given twice with different values; it takes one");
      given = value;
    });
  }
}

function pathOf(command: Command): readonly string[] {
  return command.parent === null ? [command.name()] : [...pathOf(command.parent), command.name()];
}

function usageHint(path: readonly string[]): string {
  return `Run "${path.join(" ")} --help" for usage.`;
}
