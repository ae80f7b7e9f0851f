import type { Row } from "../manifest-row.ts";

/** The identifiers and metadata of a work, as the JSON texts in its row. */
export interface WorkTexts {
  readonly ids: string;
  readonly metadata: string | null;
}

/** More works than a process has in memory by default. */
const WORKS_MAX = 4096;

/**
 * The texts of works as this process has read or written them last. They save the exchange that would read the row first.
 * They may be out of date: a statement that changes a row by them must compare them with the row.
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

/** The texts of a row with the columns `ids` and `metadata`. */
export function textsOfRow({ ids, metadata }: Row): WorkTexts {
  return { ids: String(ids), metadata: metadata === null ? null : String(metadata) };
}
