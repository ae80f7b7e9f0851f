/** Pure: from the stamps of all processes to counts, recovery times and broken promises. */

/** What happened during one fault, and in the calm time after it. */
export interface Episode {
  readonly fault: string;
  readonly detail: string;
  readonly separated: number;
  readonly returnsStore: boolean;
  readonly beganUs: number;
  readonly endedUs: number;
  /** The start of the next fault, or the end of the run. */
  readonly untilUs: number;
}

export interface JudgedEpisode extends Episode {
  /** The most writes in any window that ends in this episode, over all processes. */
  readonly most: number;
  readonly written: number;
  /** How long after the end of the fault the fleet again wrote 80 % of the limit in a window. */
  readonly recoveryMs: number | undefined;
}

export interface Promises {
  readonly mode: "wait" | "share";
  readonly limit: number;
  readonly windowUs: number;
  readonly processes: number;
}

/** A line of a process, as `judgeLines` needs it. */
interface Line {
  readonly atUs: number;
  readonly line: string;
}

/** From the return of the store to a full window of writes. */
const RECOVERY_MS = 2000;
const RECOVERED_SHARE = 0.8;

export function judge(episodes: readonly Episode[], stampsUs: readonly number[], promises: Promises) {
  const sorted = stampsUs.toSorted((a, b) => a - b);
  const counts = countsOfWindows(sorted, promises.windowUs);
  const judged = episodes.map((episode): JudgedEpisode => {
    const isInside = (us: number) => us >= episode.beganUs && us < episode.untilUs;
    let most = 0;
    let written = 0;
    for (const [index, us] of sorted.entries()) {
      if (!isInside(us)) continue;
      written += 1;
      most = Math.max(most, counts[index] ?? 0);
    }
    return { ...episode, most, written, recoveryMs: recoveryOf(episode, sorted, promises) };
  });
  return { episodes: judged, broken: judged.flatMap(episode => brokenPromises(episode, promises)) };
}

/** A process reports an outage once: more lines about the same fault break the promise. */
export function judgeLines(episodes: readonly Episode[], printed: readonly Line[]): readonly string[] {
  return episodes.flatMap(episode => {
    const inside = printed.filter(({ atUs }) => atUs >= episode.beganUs && atUs < episode.untilUs);
    // Node puts the process id in front of a warning, so a process that was started again is counted separately.
    const reports = inside.filter(({ line }) => line.includes("the shared store does not answer"));
    const times = [...Map.groupBy(reports, ({ line }) => line.split(" ")[0])].map(([, lines]) => lines.length);
    const most = Math.max(0, ...times);
    return most > 1 ? [`${nameOf(episode)}: a process reported the outage ${most} times, once is promised`] : [];
  });
}

/** The most that the mode permits in a window of this episode. */
function permitted({ separated }: Episode, { mode, limit, processes }: Promises): number {
  return mode === "wait" ? limit : limit + separated * Math.ceil(limit / processes);
}

function brokenPromises(episode: JudgedEpisode, promises: Promises): readonly string[] {
  const { most, recoveryMs, untilUs, endedUs, returnsStore } = episode;
  const what = nameOf(episode);
  const broken: string[] = [];
  const atMost = permitted(episode, promises);
  if (most > atMost) broken.push(`${what}: ${most} written in a window, at most ${atMost} are promised`);
  const isLongEnough = untilUs - endedUs > RECOVERY_MS * 1000 + promises.windowUs;
  if (returnsStore && isLongEnough && (recoveryMs === undefined || recoveryMs > RECOVERY_MS)) {
    const after = recoveryMs === undefined ? "more than the calm time" : `${recoveryMs} ms`;
    broken.push(`${what}: full speed again after ${after}, ${RECOVERY_MS} ms are promised`);
  }
  return broken;
}

/** For each stamp, how many there are in the window that ends with it. */
function countsOfWindows(sortedUs: readonly number[], windowUs: number): readonly number[] {
  let from = 0;
  return sortedUs.map((us, index) => {
    while ((sortedUs[from] ?? us) <= us - windowUs) from += 1;
    return index - from + 1;
  });
}

function recoveryOf(
  { endedUs, untilUs }: Episode,
  sortedUs: readonly number[],
  { limit, windowUs }: Promises,
): number | undefined {
  const after = sortedUs.filter(us => us >= endedUs && us < untilUs);
  const enough = Math.ceil(limit * RECOVERED_SHARE);
  for (const [index, us] of after.entries()) {
    const last = after[index + enough - 1];
    if (last !== undefined && last - us < windowUs) return Math.round((us - endedUs) / 1000);
  }
  return undefined;
}

function nameOf({ fault, detail }: Episode): string {
  return detail === "" ? fault : `${fault} (${detail})`;
}
