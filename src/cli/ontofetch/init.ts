import { writeFile } from "node:fs/promises";
import { ConfigError } from "../../errors.ts";
import { type OntofetchFlags, sourcesFile } from "../../ontology/ontofetch-settings.ts";
import { ExitCode } from "../exit-code.ts";
import type { CliCommand } from "../program.ts";

const EXAMPLE = `# What "ontofetch pull" fetches. Paths are meant from the folder of this file.
version: 1
store: ontologies
lockfile: ontologies.lock.json

# How often each service is asked, over all processes that name the same folder.
ratelimit:
  default: 8/second # and 300 a minute
  per_service: { ols: 4/second, bioportal: 2/second }
  # shared_dir: .ontofetch

defaults:
  resolver: obo
  target_formats: [obo, owl] # the first that there is

sources:
  uo: # units of measurement, by its OBO PURL
  hp: { target_formats: [obo] }
  efo: { resolver: ols, target_formats: [owl] }
  skos-core:
    resolver: skos
    target_formats: [owl, ttl]
    extras: { url: "http://www.w3.org/2004/02/skos/core" }
`;

export const init: CliCommand = {
  name: "init",
  summary: "write a sources.yaml to begin with",
  configure: command => command.option("--sources <file>", "where to; sources.yaml"),
  run: async (_args, options, io) => {
    const file = sourcesFile(options as OntofetchFlags, io.env, process.cwd());
    try {
      // Never over one that is there.
      await writeFile(file, EXAMPLE, { flag: "wx" });
    } catch (error) {
      const { code } = error as NodeJS.ErrnoException;
      if (code === undefined) throw error;
      const message = code === "EEXIST" ? "it is there already, and is left alone" : `it cannot be written (${code})`;
      throw new ConfigError([{ where: file, path: "", message }]);
    }
    io.stdout.write(`${file} is written; edit it, and see what it means with "ontofetch plan"\n`);
    return ExitCode.ok;
  },
};
