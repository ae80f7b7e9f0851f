/**
 * What exit code 1 means for each command, and 2 where it means more than a mistake in the command line or the
 * configuration. The generator fails when a command is missing here, or does not exist.
 */
export const EXIT_CODES: Readonly<Record<string, string>> = {
  "docstokg run":
    "1: a work failed or could not be refreshed, a line of the list was invalid, or the manifest, the store or a port cannot be used. 2: the flags, the configuration or the list are not valid; the run did not start.",
  "docstokg worker": "1: a work failed, or the database cannot be reached.",
  "docstokg status": "1: the manifest cannot be read. 2: it does not exist.",
  "docstokg retry": "1: a work failed again.",
  "docstokg export": "1: the manifest cannot be read, or the file cannot be written. 2: the manifest does not exist.",
  "docstokg verify": "1: a file is missing or changed, also after `--repair`.",
  "docstokg manifest copy": "1: a database cannot be read or written. 2: the target is not empty.",
  "docstokg demo": "1: a file is missing or differs from what the simulated servers sent.",
  "docstokg report": "1: the page of `--html` cannot be written. 2: the telemetry or the run was not found.",
  "docstokg doctor": "1: a check found a problem. Warnings do not fail it.",
  "docstokg policy show": "2: the policy is invalid.",
  "docstokg policy explain": "2: the policy is invalid, or the target unknown.",
  "docstokg policy check": "2: there are problems; with `--strict` also if there are warnings.",
  "docstokg breaker show": "1: the store cannot be reached. 2: there is no shared store.",
  "docstokg breaker open":
    "1: a listed process did not answer or is in shadow mode, or the store cannot be reached. 2: the target is unknown, or there is no shared store.",
  "docstokg breaker close": "as `breaker open`.",
  "docstokg breaker half-open": "as `breaker open`.",
  "docstokg limits show": "1: the store cannot be reached. 2: there is no shared store.",
  "docstokg limits hold":
    "1: a listed process did not answer, or the store cannot be reached. 2: the target is unknown, or there is no shared store.",
  "docstokg limits release": "as `limits hold`.",
  "docstokg limits set":
    "as `limits hold`; 1 also if a listed process is in shadow mode, 2 also if the limits are looser than the policy and `--force` is not given.",
  "docstokg limits reset": "as `limits hold`.",
  "docstokg dashboard":
    "1: the store or the port cannot be used. 2: the manifest does not exist. 130: ended by Ctrl-C; 0 if the reader of stdout has closed it.",
  "docstokg why": "0 also if the request would be refused, or if the store cannot be reached.",
  "docstokg completion": "2: the shell is unknown.",
  "ontofetch init": "2: the file exists.",
  "ontofetch plan": "1: a source has no file.",
  "ontofetch plan diff": "1: with `--exit-code`, there are differences, or a source could not be compared.",
  "ontofetch pull": "1: a source or an import failed.",
  "ontofetch show": "1: a named id has no stored version.",
  "ontofetch versions": "1: the service could not be asked. 2: the id is unknown.",
  "ontofetch path": "2: there is no such version.",
  "ontofetch diff": "1: with `--exit-code`, there are differences.",
  "ontofetch export": "1: the stored file is damaged.",
  "ontofetch validate": "1: a stored file is invalid.",
  "ontofetch prune": "2: a named id has no stored version.",
  "ontofetch doctor": "1: a check found a problem, so a pull would fail.",
  "ontofetch rl doctor": "2: the settings are invalid.",
  "ontofetch demo": "1: a step had another result than expected, or a simulated server rejected a request.",
  "ontofetch completion": "2: the shell is unknown.",
};
