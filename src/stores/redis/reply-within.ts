import { setStallTolerantTimer } from "../../time/stall-tolerant-timer.ts";
import type { Time } from "../../time/time.ts";

/** The reply of a server, or an error of `onSilence` if it does not come within `timeoutMs`. */
export async function replyWithin<Reply>(
  { time, timeoutMs }: { readonly time: Time; readonly timeoutMs: number },
  reply: Promise<Reply>,
  onSilence: () => Error,
): Promise<Reply> {
  const silent = Promise.withResolvers<never>();
  const timer = setStallTolerantTimer(time, timeoutMs, () => silent.reject(onSilence()));
  try {
    return await Promise.race([reply, silent.promise]);
  } finally {
    timer.cancel();
  }
}
