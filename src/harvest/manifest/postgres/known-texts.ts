import type { Row } from "../manifest-row.ts";

/** The identifiers and metadata of a work, as its row has them. */
export interface WorkTexts {
  readonly ids: string;
  readonly metadata: string | null;
}

/** More works than a process has in memory by default. */
const WORKS_MAX = 4096;

/**
 * The texts of works that this process has read or written last. They may be out of date: a statement that builds on them
 * must compare them with the row. They save the exchange that would read the row first.
 */
export class KnownTexts {
  readonly #texts = new Map<number, WorkTexts>();

  get(work: number): WorkTexts | undefined {
    return this.#texts.get(work);
  }

  set(work: number, texts: WorkTexts): void {
    this.#texts.delete(work);
    this.#texts.set(work, texts);
    if (this.#texts.size <= WORKS_MAX) return;
    const [oldest = work] = this.#texts.keys();
    this.#texts.delete(oldest);
  }

  /** @param rows with the columns `id`, `ids` and `metadata` */
  setRows(rows: readonly Row[]): void {
    for (const row of rows) this.set(Number(row["id"]), textsOfRow(row));
  }
}

/** Of a row with the columns `ids` and `metadata`. */
export function textsOfRow({ ids, metadata }: Row): WorkTexts {
  return { ids: String(ids), metadata: metadata === null ? null : String(metadata) };
}
