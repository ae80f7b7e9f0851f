import { optionHint } from "../core/text/nearest.ts";
import { shownValue } from "../core/text/quote.ts";
import { ConfigError, type ConfigProblem } from "../errors.ts";
import { isS3Url } from "../files/s3/s3-url.ts";
import type { Hub } from "../http/hub.ts";
import type { Time } from "../time/time.ts";
import { FILE_KINDS, type FileKind } from "./downloads/file-check.ts";
import { type Layout, layoutProblem } from "./downloads/layout.ts";
import { METADATA_FORMATS, type MetadataFormat } from "./downloads/metadata-file.ts";
import type { Resolver } from "./resolvers/resolver.ts";
import type { FileStorage } from "./storage/file-storage.ts";
import type { WorkFilter } from "./work-filter.ts";

/** Options of `harvest`. */
export interface HarvestOptions {
  /**
   * The output folder, which is created if it does not exist; or `s3://bucket/prefix`, with the layout
   * `content-addressed`, a manifest of its own and the package `@aws-sdk/client-s3`.
   */
  readonly folder: string;
  /** The manifest file, or a PostgreSQL URL. The same manifest continues an earlier harvest. Required with `s3://`. @default `manifest.sqlite` in the folder */
  readonly manifest?: string | undefined;
  /**
   * The hub that sends all requests. It must not retry itself: `createHub({ retry: false })`.
   * @default a hub with the shipped policy, which `harvest` closes at its end
   */
  readonly hub?: Hub | undefined;
  /** Contact address for services, for the default hub. @default the variable DOCSTOKG_MAILTO */
  readonly mailto?: string | undefined;
  /**
   * The resolvers to query, in this order. The list may contain resolvers of the caller.
   * @default `RESOLVERS` without those that need a variable that is not set, and the repository of a work first
   */
  readonly resolvers?: readonly Resolver[] | undefined;
  /**
   * Wanted formats, the preferred one first: one file is stored. Or `all`: the PDF, the JATS XML, the LaTeX source and the
   * supplements of each work, as far as services have them. @default pdf, then xml
   */
  readonly formats?: readonly FileKind[] | "all" | undefined;
  /**
   * Stores the files, instead of `folder`, which then has the manifest and partial files. The layout is
   * `content-addressed`. @default the folder
   */
  readonly storage?: FileStorage | undefined;
  /** How files are named. @default flat; in S3 and in a `storage` content-addressed, the only one there */
  readonly layout?: Layout | undefined;
  /** Which works are wanted, by their metadata. @default all */
  readonly filter?: WorkFilter | undefined;
  /** Writes the metadata of each work beside its file. @default not written */
  readonly metadata?: MetadataFormat | undefined;
  /**
   * Tries works of the list again that have failed in an earlier harvest. Those that a spent quota has stopped continue
   * there. @default false: they yield their failure again, without a request
   */
  readonly retryFailed?: boolean | undefined;
  /** Requests in flight at a time, at least 1. @default 32 */
  readonly workers?: number | undefined;
  /** Largest file in bytes. @default 500 MiB */
  readonly maxBytes?: number | undefined;
  /** How long to wait for open circuits and spent quotas when nothing else is left, in milliseconds. @default 900_000 */
  readonly patienceMs?: number | undefined;
  /**
   * Aborting it ends the harvest after the results so far; the works that are left stay pending in the manifest. If the
   * server of the manifest cannot be reached then, the harvest ends with a StoreError.
   */
  readonly signal?: AbortSignal | undefined;
  /** Clocks and timers. @default those of this machine */
  readonly time?: Time | undefined;
}

/** Returns what is expected of the value; undefined if the value is valid. */
type OptionCheck = (value: unknown) => string | undefined;

const text: OptionCheck = value => (typeof value === "string" && value !== "" ? undefined : "a text that is not empty");
const anything: OptionCheck = () => undefined;
const wholeFrom =
  (min: number): OptionCheck =>
  value =>
    Number.isInteger(value) && Number(value) >= min ? undefined : `a whole number of at least ${min}`;
const oneOf = (names: readonly string[]): OptionCheck => {
  return value => (names.includes(String(value)) ? undefined : `one of ${names.join(", ")}`);
};

/** Because of this type, an option without a check is a compile error. */
const CHECKS: Readonly<Record<keyof HarvestOptions, OptionCheck>> = {
  folder: text,
  manifest: text,
  hub: value => (typeof (value as Hub | null)?.request === "function" ? undefined : "a hub of createHub"),
  mailto: text,
  resolvers: value =>
    Array.isArray(value) && value.every(isResolver) ? undefined : "a list of resolvers, such as RESOLVERS",
  formats: value => {
    const isList = Array.isArray(value) && value.length > 0 && value.every(kind => FILE_KINDS.includes(kind));
    return isList || value === "all" ? undefined : `"all" or a list of ${FILE_KINDS.join(", ")}`;
  },
  storage: value => (isStorage(value) ? undefined : "an object with name, put, bytesOf, delete and locationOf"),
  layout: value => layoutProblem(String(value)) && `a valid layout: ${layoutProblem(String(value))}`,
  filter: value =>
    typeof value === "object" && value !== null ? undefined : `an object with ${FILTER_KEYS.join(", ")}`,
  metadata: oneOf(METADATA_FORMATS),
  retryFailed: value => (typeof value === "boolean" ? undefined : "true or false"),
  workers: wholeFrom(1),
  maxBytes: wholeFrom(1),
  patienceMs: value => (typeof value === "number" && value >= 0 ? undefined : "milliseconds, at least 0"),
  signal: value => (value instanceof AbortSignal ? undefined : "an AbortSignal"),
  time: anything,
};
const FILTER_KEYS = Object.keys({
  fromYear: 0,
  toYear: 0,
  openOnly: 0,
  licences: 0,
  types: 0,
} satisfies Record<keyof WorkFilter, 0>);

/** Throws a ConfigError that lists every invalid option. */
export function checkHarvestOptions(options: HarvestOptions): void {
  const problems: ConfigProblem[] = [];
  const add = (path: string, message: string) => problems.push({ where: "harvest", path, message });
  const given: Readonly<Record<string, unknown>> = { ...options };
  for (const [name, value] of Object.entries(given)) {
    if (value === undefined) continue;
    if (!Object.hasOwn(CHECKS, name)) add(name, `unknown option: ${optionHint(name, Object.keys(CHECKS))}`);
    else {
      const expected = CHECKS[name as keyof HarvestOptions](value);
      if (expected !== undefined) add(name, `expected ${expected}, found ${shownValue(value)}`);
    }
  }
  const { filter } = given;
  for (const name of typeof filter === "object" && filter !== null ? Object.keys(filter) : [])
    if (!FILTER_KEYS.includes(name)) add(`filter.${name}`, `unknown option: ${optionHint(name, FILTER_KEYS)}`);
  if (given["folder"] === undefined) add("folder", "required: the output folder");
  else if (given["manifest"] === undefined && isS3Url(String(given["folder"])))
    add("manifest", "required with s3://: a manifest cannot be in S3");
  if (given["storage"] !== undefined && isS3Url(String(given["folder"])))
    add("storage", "needs a local folder for partial files, not s3://");
  const { storage, layout = "content-addressed" } = given as Partial<HarvestOptions>;
  if ((storage !== undefined || isS3Url(String(given["folder"]))) && layout !== "content-addressed")
    add(
      "layout",
      `expected content-addressed, the only layout in ${storage?.name ?? "S3"}, found ${shownValue(layout)}`,
    );
  if (problems.length > 0) throw new ConfigError(problems);
}

function isResolver(value: unknown): boolean {
  const { name, needs, requestFor, parse } = (value ?? {}) as Partial<Resolver>;
  return (
    typeof name === "string" && Array.isArray(needs) && typeof requestFor === "function" && typeof parse === "function"
  );
}

function isStorage(value: unknown): boolean {
  const { name, put, bytesOf, delete: remove, locationOf } = (value ?? {}) as Partial<FileStorage>;
  return typeof name === "string" && [put, bytesOf, remove, locationOf].every(each => typeof each === "function");
}
