import { isatty } from "node:tty";
import { ExitCode } from "./exit-code.ts";
import { type Io, type Program, runProgram } from "./program.ts";

const INTERRUPT_SIGNALS = ["SIGINT", "SIGTERM"] as const;

/** Runs a program with the streams, signals and arguments of `process`, and sets the exit code of `process`. */
export async function runAsProcess(program: Program, process: NodeJS.Process): Promise<void> {
  const outputClosed = new AbortController();
  let hasOutputFailed = false;
  process.stdout.on("error", (error: NodeJS.ErrnoException) => {
    // The reader has closed the pipe (`… | head`): that is not a failure.
    if (error.code === "EPIPE") return outputClosed.abort();
    // Each write emits an error of its own.
    if (hasOutputFailed) return;
    process.stderr.write(`${program.name}: cannot write to stdout (${error.code ?? error.message})\n`);
    hasOutputFailed = true;
    process.exitCode = ExitCode.partial;
  });
  // The command continues without its progress output if the reader of stderr is gone (`… 2>&1 | head`).
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
    onHangup: listener => listenForHangup(process, listener),
    exit: code => process.exit(code),
  };
  const exitCode = await runProgram(program, io);
  process.exitCode = hasOutputFailed && exitCode === ExitCode.ok ? ExitCode.partial : exitCode;
  // A stdin that is still open would keep an interrupted process alive.
  input?.destroy();
}

/**
 * SIGHUP asks for a reload, or says that the terminal was closed. In the second case the command is interrupted, as it
 * would be without a listener. Windows sends SIGHUP only when the console is closed.
 */
function listenForHangup(process: NodeJS.Process, listener: () => void): () => void {
  if (process.platform === "win32") return () => undefined;
  const terminals = [0, 1, 2].filter(isatty);
  const onHangup = () => {
    const isTerminalGone = terminals.length > 0 && !terminals.some(isatty);
    if (isTerminalGone) process.kill(process.pid, "SIGTERM");
    else listener();
  };
  process.on("SIGHUP", onHangup);
  return () => process.off("SIGHUP", onHangup);
}
