import type { Input, InputProblem } from "../../harvest/inputs/inputs.ts";
import type { Work } from "../../harvest/work.ts";
import { systemTime } from "../../time/system-time.ts";
import type { Timer } from "../../time/time.ts";
import type { ListingContext } from "./run-session.ts";

/** Works are added to the manifest in transactions of this size. */
const BATCH_WORKS = 500;
/** If a list is typed or generated slowly, the works that have arrived are added after this time. */
const BATCH_DELAY_MS = 50;

export interface ListOptions {
  /** Rejects the whole list if one line is invalid. */
  readonly isStrict: boolean;
  /** Revalidates works that are already downloaded. */
  readonly isRefresh: boolean;
}

/** Adds the works of a list to the manifest. False if a strict list was rejected: the manifest is then unchanged. */
export async function addListedWorks(
  inputs: AsyncIterable<Input>,
  context: ListingContext,
  options: ListOptions,
): Promise<boolean> {
  const { isStrict, isRefresh } = options;
  const { manifest } = context.run;
  if (isStrict) await manifest.beginList();
  await addInBatches(inputs, context, isRefresh);
  if (!isStrict || context.signal.aborted) return true;
  const isValid = context.counts.problems === 0;
  await (isValid ? manifest.commitList() : manifest.rollbackList());
  return isValid;
}

export async function addWorks(
  { run, counts }: ListingContext,
  works: readonly Work[],
  isRefresh: boolean,
): Promise<void> {
  const { pending, present, failed } = await run.addWorks(works, { isRefresh });
  counts.wanted += pending;
  counts.present += present;
  counts.failedBefore += failed;
}

async function addInBatches(inputs: AsyncIterable<Input>, context: ListingContext, isRefresh: boolean): Promise<void> {
  let works: Work[] = [];
  let timer: Timer | undefined;
  const flushFailure = Promise.withResolvers<never>();
  // One batch after the other, so that works are added in the order of the list.
  let flushed = Promise.resolve();
  const flush = (): Promise<void> => {
    timer?.cancel();
    timer = undefined;
    const batch = works;
    works = [];
    flushed = flushed.then(async () => {
      // After an interrupt the manifest may be closed already.
      if (batch.length > 0 && !context.signal.aborted) await addWorks(context, batch, isRefresh);
    });
    return flushed;
  };
  const flushFromTimer = () => flush().catch(error => flushFailure.reject(error));
  const read = async () => {
    for await (const input of inputs) {
      if (context.signal.aborted) return;
      if ("problem" in input) {
        context.counts.problems += 1;
        context.log(problemText(input.problem));
      } else works.push(input.work);
      if (works.length >= BATCH_WORKS) await flush();
      else timer ??= systemTime.setTimer(BATCH_DELAY_MS, flushFromTimer);
    }
    await flush();
  };
  try {
    await Promise.race([read(), flushFailure.promise]);
  } finally {
    timer?.cancel();
  }
}

function problemText({ source, line, message }: InputProblem): string {
  return `${source}:${line}: ${message}`;
}
