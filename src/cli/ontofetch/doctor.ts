import { randomUUID } from "node:crypto";
import { rm, statfs, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { ConfigError } from "../../errors.ts";
import { errnoOf } from "../../files/disk-errors.ts";
import { makeFolder } from "../../files/make-folder.ts";
import { isS3Url } from "../../files/s3/s3-url.ts";
import { type Lockfile, readLock } from "../../ontology/lockfile.ts";
import { ONTOFETCH_VARIABLES } from "../../ontology/ontofetch-environment.ts";
import type { OntofetchSettings } from "../../ontology/ontofetch-settings.ts";
import { openOntologyStore } from "../../ontology/open-ontology-store.ts";
import { RESOLVERS } from "../../ontology/resolvers/all.ts";
import { workFolderOf } from "../../ontology/work-folder.ts";
import { systemTime } from "../../time/system-time.ts";
import { type DoctorFinding, printFindings } from "../output/doctor-findings.ts";
import { formatBytes } from "../output/format.ts";
import type { CommandModule, Io } from "../program.ts";
import { addSettingsFlags, ontofetchSettingsOf } from "./settings-flags.ts";

/** The largest ontologies need this much disk space. */
const MIN_FREE_BYTES = 5_000_000_000;

/** `ontofetch doctor`: checks whether a pull can work here. Sends no request, except to the S3 service of the store. */
export const doctor: CommandModule = {
  configure: command => {
    command.option("--json", "print JSON");
    addSettingsFlags(command, ["sources", "store", "lockfile", "sharedDir"]);
  },
  run: async (_, flags, io) => {
    const findings: DoctorFinding[] = [
      { what: "node", verdict: "ok", detail: process.versions.node },
      environmentCheck(io),
    ];
    try {
      const settings = await ontofetchSettingsOf(flags, io);
      const { file, sources } = settings;
      const verdict = sources.length === 0 ? "warning" : "ok";
      findings.push({ what: "sources", verdict, detail: `${sources.length} in ${file}` });
      const folders = await folderChecks(settings);
      findings.push(...identityChecks(settings, io), ...folders);
      const [storeFinding] = folders;
      findings.push(await lockfileCheck(settings, storeFinding?.verdict === "ok"));
    } catch (error) {
      if (!(error instanceof ConfigError)) throw error;
      for (const { where, path, message } of error.problems) {
        findings.push({
          what: "settings",
          verdict: "problem",
          detail: `${where}: ${path ? `${path}: ` : ""}${message}`,
        });
      }
    }
    return printFindings(io, findings, flags["json"] === true);
  },
};

/** Prints names only: a value may be a secret. */
function environmentCheck({ env }: Io): DoctorFinding {
  const set = ONTOFETCH_VARIABLES.filter(name => env[name]);
  return {
    what: "environment",
    verdict: "ok",
    detail: set.length === 0 ? "no ONTOFETCH_* variable is set" : set.join(", "),
  };
}

function identityChecks({ sources }: OntofetchSettings, { env }: Io): readonly DoctorFinding[] {
  // A source with its own `base` URL gets its API key from an identity, not from the variable of the resolver.
  const used = [...RESOLVERS.values()].filter(({ name }) =>
    sources.some(({ resolver, extras }) => resolver === name && extras["base"] === undefined),
  );
  const found = used.flatMap(({ name, keyVariable }): readonly DoctorFinding[] => {
    if (keyVariable === undefined) return [];
    const isSet = Boolean(env[keyVariable]);
    const detail = isSet ? `${keyVariable} is set` : `${name} needs an API key: set ${keyVariable}`;
    return [{ what: "API key", verdict: isSet ? "ok" : "problem", detail }];
  });
  const hasContact = Boolean(env["DOCSTOKG_MAILTO"]);
  const detail = hasContact ? "DOCSTOKG_MAILTO is set" : "DOCSTOKG_MAILTO is not set: services get no contact address";
  return [...found, { what: "contact", verdict: hasContact ? "ok" : "warning", detail }];
}

/** The check of the store is first. */
async function folderChecks({ store, sharedDir }: OntofetchSettings): Promise<readonly DoctorFinding[]> {
  const isInS3 = isS3Url(store);
  const local = isInS3 ? workFolderOf(store) : store;
  const findings = [
    ...(isInS3 ? [await bucketCheck(store)] : []),
    await folderCheck(isInS3 ? "work folder" : "store", local),
  ];
  if (sharedDir === undefined) {
    findings.push({
      what: "shared_dir",
      verdict: "ok",
      detail: `not set: processes with the same store ${isInS3 ? "on this machine" : "folder"} share rate limits`,
    });
  } else findings.push(await folderCheck("shared_dir", sharedDir));
  if (findings.some(({ what, verdict }) => what !== "shared_dir" && verdict !== "ok")) return findings;
  const { bavail, bsize } = await statfs(local);
  const free = bavail * bsize;
  const isLow = free < MIN_FREE_BYTES;
  const need = isLow ? `; the largest ontologies need ${formatBytes(MIN_FREE_BYTES)}` : "";
  return [...findings, { what: "disk", verdict: isLow ? "warning" : "ok", detail: `${formatBytes(free)} free${need}` }];
}

async function bucketCheck(store: string): Promise<DoctorFinding> {
  using opened = await openOntologyStore(store, systemTime);
  try {
    await opened.prepare();
    return { what: "store", verdict: "ok", detail: store };
  } catch (error) {
    if (!(error instanceof ConfigError)) throw error;
    return { what: "store", verdict: "problem", detail: error.problems.map(({ message }) => message).join("; ") };
  }
}

async function folderCheck(what: string, folder: string): Promise<DoctorFinding> {
  const probe = join(folder, `.${randomUUID()}.tmp`);
  try {
    makeFolder(folder);
    await writeFile(probe, "", { flag: "wx" });
    await rm(probe);
    return { what, verdict: "ok", detail: folder };
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    if (code === undefined) throw error;
    return { what, verdict: "problem", detail: `cannot write to ${folder} (${code})` };
  }
}

/** If the store cannot be used, its versions are not compared with the lockfile. */
async function lockfileCheck(settings: OntofetchSettings, isStoreUsable: boolean): Promise<DoctorFinding> {
  const { lockfile, store, sources } = settings;
  const what = "lockfile";
  let lock: Lockfile;
  try {
    lock = await readLock(lockfile);
  } catch (error) {
    if (error instanceof ConfigError)
      return { what, verdict: "problem", detail: error.problems.map(({ message }) => message).join("; ") };
    const code = errnoOf(error);
    if (code === undefined) throw error;
    return { what, verdict: "problem", detail: `${lockfile} cannot be read (${code})` };
  }
  const missing = isStoreUsable ? await missingFrom(store, lock) : [];
  const unlocked = sources.filter(({ id }) => !lock.has(id)).map(({ id }) => id);
  const details = [
    `${lock.size} locked`,
    ...(missing.length > 0 ? [`not in the store: ${missing.join(", ")}`] : []),
    ...(unlocked.length > 0 ? [`not locked yet: ${unlocked.join(", ")}`] : []),
  ];
  return {
    what,
    verdict: missing.length + unlocked.length > 0 ? "warning" : "ok",
    detail: details.join("; "),
  };
}

async function missingFrom(root: string, lock: Lockfile): Promise<readonly string[]> {
  using store = await openOntologyStore(root, systemTime);
  const missing: string[] = [];
  for (const [id, { sha256 }] of lock) if ((await store.findByHash(id, sha256)) === undefined) missing.push(id);
  return missing;
}
