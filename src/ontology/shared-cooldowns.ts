import type { Store } from "../stores/store.ts";
import type { Time } from "../time/time.ts";

interface HoldNote {
  readonly untilUs: number;
}

/** What others say is no older than this when leave is given. */
const FRESH_US = 25_000;
/** So many keys are remembered as heard of; looking once more costs little. */
const HEARD_MAX = 1024;

/** Cooldowns of keys that all processes of one store keep; the later one counts. */
export class SharedHolds {
  readonly #store: Store;
  readonly #time: Time;
  readonly #hold: (key: string, ms: number) => void;
  readonly #heardUs = new Map<string, number>();

  /** `hold` is told what others have said. */
  constructor(store: Store, time: Time, hold: (key: string, ms: number) => void) {
    this.#store = store;
    this.#time = time;
    this.#hold = hold;
  }

  /** Tells the others. A store that is away is not told: then each process keeps what it knows. */
  async say(key: string, ms: number): Promise<void> {
    const change = this.#store.change<HoldNote, void>(nameOf(key), ({ note, nowUs }) => {
      const untilUs = nowUs + ms * 1000;
      if (note !== undefined && note.untilUs >= untilUs) return { result: undefined };
      return { note: { next: { untilUs }, keepUntilUs: untilUs }, result: undefined };
    });
    await change.catch(() => undefined);
  }

  /** Looks at what others have said, unless it did so a moment ago. */
  async hear(key: string): Promise<void> {
    const heardUs = this.#heardUs.get(key);
    if (heardUs !== undefined && this.#time.monotonicUs() - heardUs < FRESH_US) return;
    const seen = await this.#store.read<HoldNote>(nameOf(key)).catch(() => undefined);
    if (this.#heardUs.size >= HEARD_MAX) this.#heardUs.clear();
    this.#heardUs.set(key, this.#time.monotonicUs());
    if (seen?.note === undefined) return;
    const leftMs = (seen.note.untilUs - seen.nowUs) / 1000;
    if (leftMs > 0) this.#hold(key, leftMs);
  }
}

function nameOf(key: string): string {
  return `hold ${key}`;
}
