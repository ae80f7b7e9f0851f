import { codeOf } from "../../http/error-code.ts";
import { usageError } from "../usage-error.ts";

/** Errors that another port would avoid. */
const PORT_ERRORS: ReadonlySet<string | undefined> = new Set(["EADDRINUSE", "EACCES"]);

/**
 * The error of a command that cannot listen: a system error if another port would work, because the same flags may work
 * later; otherwise a ConfigError.
 * @param flag of the port
 * @param addressFlag of the address, if there is one
 */
export function portError(problem: string, cause: unknown, flag: string, addressFlag = flag): Error {
  const code = codeOf(cause);
  if (!PORT_ERRORS.has(code)) return usageError(addressFlag, problem, { cause });
  return Object.assign(new Error(`${flag}: ${problem}`, { cause }), { code, syscall: "listen" });
}
