import { describeCommands } from "./command-descriptions.ts";
import { completionScript, SHELLS, type Shell } from "./completion-scripts.ts";
import { ExitCode } from "./exit-code.ts";
import type { CommandModule, Program } from "./program.ts";
import { usageError } from "./usage-error.ts";

/** `completion <shell>` of both programs. The script is complete: pressing Tab starts no process of ours. */
export function completion(program: Program): CommandModule {
  return {
    configure: command => {
      command.argument("<shell>", SHELLS.join(", "));
    },
    run: async ([shell = ""], _, io) => {
      if (!isShell(shell)) throw usageError("<shell>", `${JSON.stringify(shell)} is not one of ${SHELLS.join(", ")}`);
      io.stdout.write(completionScript(shell, program.name, await describeCommands(program)));
      return ExitCode.ok;
    },
  };
}

function isShell(text: string): text is Shell {
  return (SHELLS as readonly string[]).includes(text);
}
