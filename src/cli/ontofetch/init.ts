import { writeFile } from "node:fs/promises";
import { type OntofetchFlags, sourcesFile } from "../../ontology/ontofetch-settings.ts";
import { ExitCode } from "../exit-code.ts";
import type { CommandModule } from "../program.ts";
import { usageError } from "../usage-error.ts";

const EXAMPLE = `# Sources for "ontofetch pull". Paths are relative to the folder of this file.
version: 1
store: ontologies
lockfile: ontologies.lock.json

# Rate limits per service, over all processes with this store, or with the same shared_dir if that is set.
ratelimit:
  default: 8/second # and at most 300/minute
  per_service: { ols: 4/second, bioportal: 2/second }
  # shared_dir: /var/tmp/ontofetch

defaults:
  resolver: obo
  target_formats: [obo, owl] # the first format that is available

sources:
  uo: # units of measurement, by its OBO PURL
  hp: { target_formats: [obo] }
  efo: { resolver: ols, target_formats: [owl] }
  skos-core:
    resolver: skos
    target_formats: [owl, ttl]
    extras: { url: "http://www.w3.org/2004/02/skos/core" }
`;

/** `ontofetch init`: writes an example sources.yaml. */
export const init: CommandModule = {
  configure: command => {
    command.option("--sources <file>", "file to write (default: ONTOFETCH_SOURCES, else sources.yaml)");
  },
  run: async (_, flags, io) => {
    const file = sourcesFile(flags as OntofetchFlags, io.env, process.cwd());
    try {
      // "wx" fails if the file exists.
      await writeFile(file, EXAMPLE, { flag: "wx" });
    } catch (error) {
      const { code } = error as NodeJS.ErrnoException;
      if (code === undefined) throw error;
      throw usageError(
        file,
        code === "EEXIST"
          ? "already exists and was not overwritten; choose another file with --sources"
          : `cannot be written (${code})`,
      );
    }
    io.stdout.write(`Wrote ${file}. Edit it, then run "ontofetch plan".\n`);
    return ExitCode.ok;
  },
};
