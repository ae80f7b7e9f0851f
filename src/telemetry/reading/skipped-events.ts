/** The events that a reader of telemetry has skipped. */
export interface SkippedEvents {
  /** Lines or rows that are not valid events: mostly incomplete lines after a kill or on a full disk. */
  readonly unreadable: number;
  /** Number of events by type, of types that this version does not know. */
  readonly unknown: ReadonlyMap<string, number>;
}

/** Further unknown types are counted together. */
const UNKNOWN_TYPES_MAX = 100;

export class SkippedEventCounter implements SkippedEvents {
  unreadable = 0;
  readonly unknown = new Map<string, number>();

  countUnknown(type: string): void {
    const name = this.unknown.has(type) || this.unknown.size < UNKNOWN_TYPES_MAX ? type.slice(0, 100) : "(others)";
    this.unknown.set(name, (this.unknown.get(name) ?? 0) + 1);
  }
}
