/** Left out of the record: a contact address, a private file, and the URL of a store, which may contain a password. */
const REDACTED_FLAGS: ReadonlySet<string> = new Set(["mailto", "ca", "rateDsn"]);
const VALUE_CHARS_MAX = 200;

/** The command line that the manifest records: the flags, without works and without private values. */
export function recordedCommand(name: string, options: Readonly<Record<string, unknown>>): string {
  const flags = Object.entries(options).flatMap(([key, value]) => {
    // `--no-telemetry` is parsed as `telemetry: false`; without the flag it is true.
    if (key === "telemetry") return value === false ? ["--no-telemetry"] : [];
    if (REDACTED_FLAGS.has(key) || value === undefined || value === false) return [];
    const flag = `--${key.replace(/[A-Z]/g, letter => `-${letter.toLowerCase()}`)}`;
    if (value === true) return [flag];
    const values = Array.isArray(value) ? value : [value];
    return values.map(each => `${flag} ${String(each).slice(0, VALUE_CHARS_MAX)}`);
  });
  return [name, ...flags].join(" ");
}
