/** Not for a record that outlives the command: whom to write to, and the address of a store, which may hold its password. */
const REDACTED_FLAGS: ReadonlySet<string> = new Set(["mailto", "ca", "rateDsn"]);
const VALUE_CHARS_MAX = 200;

/** A command as the manifest keeps it: its flags, without the list of works, and without whom services may write to. */
export function recordedCommand(name: string, options: Readonly<Record<string, unknown>>): string {
  const flags = Object.entries(options).flatMap(([key, value]) => {
    // The one flag that is there to be denied.
    if (key === "telemetry") return value === false ? ["--no-telemetry"] : [];
    if (REDACTED_FLAGS.has(key) || value === undefined || value === false) return [];
    const flag = `--${key.replace(/[A-Z]/g, letter => `-${letter.toLowerCase()}`)}`;
    if (value === true) return [flag];
    const values = Array.isArray(value) ? value : [value];
    return values.map(each => `${flag} ${String(each).slice(0, VALUE_CHARS_MAX)}`);
  });
  return [name, ...flags].join(" ");
}
