import { readFileSync } from "node:fs";
import { Command, CommanderError } from "commander";
import { isDocstokgError } from "../errors.ts";
import type { Time } from "../time/time.ts";
import { ExitCode } from "./exit-code.ts";

/** What a command may touch of the process, handed in so that tests can call it. */
export interface Io {
  readonly argv: readonly string[];
  readonly env: Readonly<Record<string, string | undefined>>;
  readonly stdout: Output;
  readonly stderr: Output;
  /** Read only by commands that were told to. */
  readonly stdin?: AsyncIterable<Uint8Array | string> | undefined;
  /** Calls back at each Ctrl-C, or request to end, until told to stop. */
  readonly onInterrupt?: ((listener: () => void) => () => void) | undefined;
  /** Aborted when whoever read the output has gone away. */
  readonly outputClosed?: AbortSignal | undefined;
  /** @default the clocks of this machine */
  readonly time?: Time | undefined;
}

export interface Output {
  write(text: string): unknown;
  readonly isTTY?: boolean | undefined;
  readonly columns?: number | undefined;
  readonly rows?: number | undefined;
}

/** One command: a file of its own, its options and arguments, and what it does. */
export interface CliCommand {
  readonly name: string;
  readonly summary: string;
  /** Declares arguments and options on a fresh commander command. */
  readonly configure?: (command: Command) => void;
  /** What it does; absent where it only gathers the commands below it. */
  readonly run?: (args: readonly string[], options: Readonly<Record<string, unknown>>, io: Io) => Promise<ExitCode>;
  readonly commands?: readonly CliCommand[];
}

export interface Program {
  readonly name: string;
  readonly summary: string;
  readonly commands: readonly CliCommand[];
}

const EXIT_CODES = `
Exit codes:
  ${ExitCode.ok}    all done
  ${ExitCode.partial}    done in part: some of the work failed
  ${ExitCode.usage}    the command line or the configuration is wrong; nothing was done
  ${ExitCode.interrupted}  interrupted
`;

/** Runs a command line and answers with its exit code; never throws for what a user typed or configured. */
export async function runProgram(program: Program, io: Io): Promise<ExitCode> {
  let exitCode: ExitCode = ExitCode.ok;
  const root = new Command(program.name)
    .description(program.summary)
    .version(packageVersion(), "-V, --version", "print the version")
    .helpOption("-h, --help", "print this help")
    .helpCommand(false)
    // Long flags leave less than commander would wrap into; a terminal would break the lines anyhow, and anywhere.
    .configureHelp({ minWidthToWrap: 24 })
    .addHelpText("after", EXIT_CODES)
    .showHelpAfterError(`Run "${program.name} --help" to see what there is.`)
    .exitOverride()
    .configureOutput({
      writeOut: text => io.stdout.write(text),
      writeErr: text => io.stderr.write(text),
      outputError: (text, write) => write(text.replace(/^error:/, `${program.name}:`)),
    });
  const add = (to: Command, { name, summary, configure, run, commands = [] }: CliCommand, path: string[]) => {
    const command = to.command(name).description(summary).helpCommand(false);
    path.push(name);
    command.showHelpAfterError(`Run "${path.join(" ")} --help" to see what there is.`);
    configure?.(command);
    for (const inner of commands) add(command, inner, [...path]);
    if (run === undefined) return;
    command.action(async () => {
      exitCode = await run(command.args, command.optsWithGlobals(), io);
    });
  };
  for (const command of program.commands) add(root, command, [program.name]);
  // A command like the others, so that the list of commands, and what is suggested from it, is never empty.
  root
    .command("help [command...]")
    .description("print this help, or that of a command")
    .action((names: readonly string[]) => {
      let command = root;
      for (const name of names) {
        const inner = command.commands.find(candidate => candidate.name() === name);
        if (inner === undefined) return command.error(`error: there is no command '${names.join(" ")}'`);
        command = inner;
      }
      return command.help();
    });
  try {
    await root.parseAsync([...io.argv], { from: "user" });
    return exitCode;
  } catch (error) {
    if (error instanceof CommanderError) return error.exitCode === 0 ? ExitCode.ok : ExitCode.usage;
    if (isDocstokgError(error) && error.code === "DOCSTOKG_CONFIG") {
      io.stderr.write(`${program.name}: ${error.message}\n`);
      return ExitCode.usage;
    }
    // A disk that is full, a list or a store that cannot be had: what was done until then is kept.
    if (isDocstokgError(error) && (error.code === "DOCSTOKG_DOWNLOAD" || error.code === "DOCSTOKG_STORE")) {
      io.stderr.write(`${program.name}: ${error.message}\n`);
      return ExitCode.partial;
    }
    if (isSystemError(error)) {
      io.stderr.write(`${program.name}: ${error.message}\n`);
      return ExitCode.partial;
    }
    throw error;
  }
}

/** A full disk, a folder that may not be written to: nothing that a list of our functions would help with. */
function isSystemError(error: unknown): error is Error {
  return error instanceof Error && "syscall" in error && "code" in error;
}

/** Runs a program as this process. A reader that goes away (`… | head`) is no failure. */
export async function runAsProcess(program: Program, process: NodeJS.Process): Promise<void> {
  const outputClosed = new AbortController();
  process.stdout.on("error", (error: NodeJS.ErrnoException) => {
    if (error.code === "EPIPE") return outputClosed.abort();
    process.stderr.write(`${program.name}: the output cannot be written (${error.code ?? error.message})\n`);
    process.exitCode = ExitCode.partial;
  });
  // Whoever watched has gone (`… 2>&1 | head`); what is done goes on without being watched.
  process.stderr.on("error", () => undefined);
  const { stdout, stderr, argv, env } = process;
  let input: NodeJS.ReadStream | undefined;
  const io: Io = {
    argv: argv.slice(2),
    env,
    stdout,
    stderr,
    get stdin() {
      input = process.stdin;
      return input;
    },
    outputClosed: outputClosed.signal,
    onInterrupt: listener => {
      for (const signal of INTERRUPT_SIGNALS) process.on(signal, listener);
      return () => {
        for (const signal of INTERRUPT_SIGNALS) process.off(signal, listener);
      };
    },
  };
  process.exitCode = await runProgram(program, io);
  // Whoever was interrupted while reading would wait for the end of it for ever.
  input?.destroy();
}

const INTERRUPT_SIGNALS = ["SIGINT", "SIGTERM"] as const;

/** Read at run time: the same file is true for the sources and for the installed package. */
function packageVersion(): string {
  const { version } = JSON.parse(readFileSync(new URL("../../package.json", import.meta.url), "utf8"));
  return version;
}
