import type { TelemetryEvent } from "../telemetry/events.ts";
import { redacted } from "../telemetry/redaction.ts";
import type { EventRow } from "./dashboard-state.ts";
import { eventRow, isRoutineEvent } from "./event-row.ts";

const KEPT_MAX = 500;
/** Lines of ordinary requests in one message to the page. Further requests are only in the charts. */
const ROUTINE_MAX = 40;

/** The latest events, as lines of the page. Holds a bounded number of them. */
export class EventLog {
  #notable: EventRow[] = [];
  /** Lines of ordinary requests since the last message. They are not kept for pages that connect later. */
  #routine: EventRow[] = [];
  #seq = 0;

  /** @param wantsRoutine false while no page is connected: then lines of ordinary requests are not built */
  take(event: TelemetryEvent, wantsRoutine: boolean): void {
    const isFull = !wantsRoutine || this.#routine.length >= ROUTINE_MAX;
    if (isFull && isRoutineEvent(event)) return;
    this.#seq += 1;
    this.#add(eventRow(redacted(event), this.#seq));
  }

  /** Adds a line that does not come from an event. */
  addLine(line: Omit<EventRow, "seq">): void {
    this.#seq += 1;
    this.#add({ seq: this.#seq, ...line });
  }

  /** Forgets all lines. The numbers continue, so that a page shows later lines as new ones. */
  clear(): void {
    this.#notable = [];
    this.#routine = [];
  }

  /** The notable events that are kept, oldest first. */
  get kept(): readonly EventRow[] {
    return this.#notable.slice(-KEPT_MAX);
  }

  /** The events that are kept, and ordinary requests since the last call, oldest first. */
  takeAll(): readonly EventRow[] {
    const routine = this.#routine;
    this.#routine = [];
    return [...this.kept, ...routine].sort((a, b) => a.seq - b.seq);
  }

  #add(row: EventRow): void {
    if (row.isRoutine) {
      if (this.#routine.length < ROUTINE_MAX) this.#routine.push(row);
      return;
    }
    this.#notable.push(row);
    if (this.#notable.length > KEPT_MAX * 2) this.#notable = this.#notable.slice(-KEPT_MAX);
  }
}
