/**
 * The checks of `docstokg doctor` that need no store. They never print a key, the contact address or the password of a
 * proxy.
 */
import { stat, statfs } from "node:fs/promises";
import { dirname } from "node:path";
import { withoutCredentials } from "../../core/text/passwords.ts";
import { ConfigError } from "../../errors.ts";
import { runtimeProblem } from "../../http/supported-runtime.ts";
import { proxySettings } from "../../http/wire/proxy-wire.ts";
import type { PolicyCheck } from "../../policy/check-file.ts";
import type { Environment } from "../../policy/environment.ts";
import type { LoadedPolicy } from "../../policy/load.ts";
import { shippedValues } from "../../policy/shipped-policy.ts";
import type { DoctorFinding } from "../output/doctor-findings.ts";
import { formatBytes, formatCount } from "../output/format.ts";

const MIN_FREE_BYTES = 1_000_000_000;
const DAY_MS = 86_400_000;
const OTHER_FOLDER = "choose another folder with --out";

export function nodeCheck(versions: Readonly<Record<string, string | undefined>>): DoctorFinding {
  const problem = runtimeProblem(versions);
  return problem === undefined
    ? { what: "node", verdict: "ok", detail: versions["node"] ?? "" }
    : { what: "node", verdict: "problem", detail: problem };
}

/** Problems and warnings of the policy, and rate limits whose source is old. */
export function policyChecks(checked: PolicyCheck): readonly DoctorFinding[] {
  return [...validityChecks(checked), policyAgeCheck(checked)];
}

function validityChecks({ problems, findings }: PolicyCheck): readonly DoctorFinding[] {
  const what = "policy";
  if (problems.length > 0)
    return problems.map(({ where, path, message }) => ({
      what,
      verdict: "problem",
      detail: `${where}: ${path ? `${path}: ` : ""}${message}`,
    }));
  const warnings = findings.filter(({ rule, severity }) => severity === "warning" && rule !== "stale-number");
  if (warnings.length === 0) return [{ what, verdict: "ok", detail: "valid" }];
  const detail = `${formatCount(warnings.length, "warning")}, the first: ${warnings[0]?.message}`;
  return [{ what, verdict: "warning", detail, advice: "docstokg policy check lists all warnings" }];
}

function policyAgeCheck({ findings }: PolicyCheck): DoctorFinding {
  const what = "policy age";
  const stale = findings.filter(({ rule }) => rule === "stale-number");
  if (stale.length === 0) return { what, verdict: "ok", detail: "no source of a rate limit is older than 180 days" };
  return {
    what,
    verdict: "warning",
    detail: stale.map(({ message }) => message).join("; "),
    advice: "compare these numbers with the pages of the services; a newer version of the package may have newer ones",
  };
}

/**
 * The notes of the shipped limits say in which month a source was read. A clock that shows an earlier time is wrong.
 * The notes of the user's file may contain any date, such as the end of a contract.
 */
export function clockCheck(nowMs: number): DoctorFinding {
  const notes = shippedValues("ratelimits").map(({ note = "" }) => note);
  const dates = notes.flatMap(note => [...note.matchAll(/\b(20\d\d)-(0[1-9]|1[0-2])\b/g)]);
  const newestMs = Math.max(0, ...dates.map(([, year, month]) => Date.UTC(Number(year), Number(month) - 1)));
  const detail = new Date(nowMs).toISOString();
  if (nowMs >= newestMs - DAY_MS) return { what: "clock", verdict: "ok", detail };
  return {
    what: "clock",
    verdict: "problem",
    detail: `${detail} is before ${new Date(newestMs).toISOString().slice(0, 10)}, the date of the newest source in the shipped policy`,
    advice: "set the clock of the machine: certificates and dates in Retry-After are compared with it",
  };
}

export function proxyCheck(env: Environment): DoctorFinding {
  try {
    const settings = proxySettings(env);
    if (settings === undefined) return { what: "proxy", verdict: "ok", detail: "none in the environment" };
    const { httpProxy, httpsProxy, noProxy } = settings;
    const parts = [
      ...(httpsProxy === "" ? [] : [`https via ${withoutCredentials(httpsProxy)}`]),
      ...(httpProxy === "" ? [] : [`http via ${withoutCredentials(httpProxy)}`]),
      ...(noProxy === "" ? [] : [`no proxy for ${noProxy}`]),
    ];
    const detail = `${parts.join(", ")}; in your own program, a hub uses the proxy only with network: { proxy: "env" }`;
    return { what: "proxy", verdict: "ok", detail };
  } catch (error) {
    if (!(error instanceof ConfigError)) throw error;
    return { what: "proxy", verdict: "problem", detail: error.message };
  }
}

export function contactCheck(env: Environment): DoctorFinding {
  if (env["DOCSTOKG_MAILTO"]) return { what: "contact", verdict: "ok", detail: "DOCSTOKG_MAILTO is set" };
  return {
    what: "contact",
    verdict: "warning",
    detail: "DOCSTOKG_MAILTO is not set: services get no contact address, and some of them allow fewer requests",
    advice: "export DOCSTOKG_MAILTO=you@example.org, with your own address",
  };
}

/** Which API keys are set, of those for which the policy has other limits (`with` in ratelimits.yaml). */
export function keysCheck({ ratelimits }: LoadedPolicy, env: Environment): DoctorFinding {
  const names = ratelimits.assignments.flatMap(({ path: [, , section, key = ""] }) =>
    section === "with" && key !== "mailto" && key !== "" ? [key] : [],
  );
  const known = [...new Set(names)];
  const set = known.filter(name => env[name]);
  const missing = known.filter(name => !env[name]);
  const detail = [
    set.length === 0 ? "none is set" : `set: ${set.join(", ")}`,
    ...(missing.length === 0 ? [] : [`not set, would allow more requests: ${missing.join(", ")}`]),
  ];
  return { what: "API keys", verdict: "ok", detail: detail.join("; ") };
}

/** The free space of the output folder, or of the nearest folder above it that exists. */
export async function diskCheck(folder: string): Promise<DoctorFinding> {
  try {
    if (!(await stat(folder)).isDirectory())
      return { what: "disk", verdict: "problem", detail: `${folder} is not a folder`, advice: OTHER_FOLDER };
    const { bavail, bsize } = await statfs(folder);
    const free = bavail * bsize;
    const detail = `${formatBytes(free)} free in ${folder}`;
    if (free >= MIN_FREE_BYTES) return { what: "disk", verdict: "ok", detail };
    return { what: "disk", verdict: "warning", detail, advice: `free some space, or ${OTHER_FOLDER}` };
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    if (code === "ENOENT" && dirname(folder) !== folder) return diskCheck(dirname(folder));
    if (code === undefined) throw error;
    return { what: "disk", verdict: "problem", detail: `cannot read ${folder} (${code})`, advice: OTHER_FOLDER };
  }
}
