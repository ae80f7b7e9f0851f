/** So many types are told apart. */
const UNKNOWN_MAX = 100;

/** What was met on the way that is no event of ours. */
export class SkippedEvents {
  /** Lines that are no event: torn ones, mostly, after a kill or on a full disk. */
  unreadable = 0;
  /** Events of types that this version does not know. */
  readonly unknown = new Map<string, number>();

  countUnknown(type: string): void {
    const name = this.unknown.has(type) || this.unknown.size < UNKNOWN_MAX ? type.slice(0, 100) : "(others)";
    this.unknown.set(name, (this.unknown.get(name) ?? 0) + 1);
  }
}
