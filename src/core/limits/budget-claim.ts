/** The limits that processes claim for one shared budget. For each window length the strictest of them applies. */

/** One window of the policy of a process. */
export interface ClaimedWindow {
  readonly limit: number;
  /** Length in the policy; identifies the window. */
  readonly windowUs: number;
  /** Length with guard and pace. */
  readonly spanUs: number;
}

/** The limits that a process applies to this budget. */
export interface BudgetClaim {
  readonly windows: readonly ClaimedWindow[];
  /** Minimum distance between two sends of a smoothed budget; 0 for none. */
  readonly spacingUs: number;
}

/** A claim as text: `spacing;limit,window,span;…`. Equal claims have equal texts. */
export function claimText({ spacingUs, windows }: BudgetClaim): string {
  let text = String(spacingUs);
  for (const { limit, windowUs, spanUs } of windows) text += `;${limit},${windowUs},${spanUs}`;
  return text;
}

function parseClaim(text: string): BudgetClaim {
  const [spacingUs = "0", ...windows] = text.split(";");
  return {
    spacingUs: Number(spacingUs),
    windows: windows.map(window => {
      const [limit = 0, windowUs = 0, spanUs = 0] = window.split(",").map(Number);
      return { limit, windowUs, spanUs };
    }),
  };
}

/** A claim, and how many processes make it. */
export interface ClaimCount {
  readonly text: string;
  count: number;
}

/**
 * The different claims of the live processes. Processes with the same policy make the same claim, so there are few of
 * them, however many processes there are.
 */
export class ClaimCounts {
  readonly #counts: ClaimCount[];

  constructor(counts: readonly ClaimCount[] = []) {
    this.#counts = counts.map(each => ({ ...each }));
  }

  dump(): readonly ClaimCount[] {
    return this.#counts.map(each => ({ ...each }));
  }

  /** True if no process made this claim before. */
  add(text: string): boolean {
    const existing = this.#counts.find(each => each.text === text);
    if (existing === undefined) this.#counts.push({ text, count: 1 });
    else existing.count += 1;
    return existing === undefined;
  }

  /** True if no process makes this claim any more. */
  remove(text: string): boolean {
    const index = this.#counts.findIndex(each => each.text === text);
    const existing = this.#counts[index];
    if (existing === undefined) return false;
    existing.count -= 1;
    if (existing.count === 0) this.#counts.splice(index, 1);
    return existing.count === 0;
  }

  /** The strictest limit for each window length, and the widest spacing. */
  strictest(): BudgetClaim {
    let spacingUs = 0;
    const windows = new Map<number, ClaimedWindow>();
    for (const { text } of this.#counts) {
      const claim = parseClaim(text);
      spacingUs = Math.max(spacingUs, claim.spacingUs);
      for (const window of claim.windows) {
        const known = windows.get(window.windowUs) ?? window;
        const limit = Math.min(known.limit, window.limit);
        windows.set(window.windowUs, { ...window, limit, spanUs: Math.max(known.spanUs, window.spanUs) });
      }
    }
    return { spacingUs, windows: [...windows.values()] };
  }
}
