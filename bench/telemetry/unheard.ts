/** What a channel without subscribers costs a request. In a process of its own, as in a program with one telemetry. */
import { channelSink } from "../../src/telemetry/sinks/channel-sink.ts";
import type { BenchOptions, PartReport } from "../kit/bench.ts";
import { atMost } from "../kit/report.ts";
import { NONE, telemetryRace } from "./telemetry-race.ts";

const UNHEARD = "channel without subscribers";
/** Shows how far two equal hubs differ. */
const NONE_AGAIN = "no telemetry, again";
const UNHEARD_TIMES_MAX = 1.02;

export async function measure({ isQuick }: BenchOptions): Promise<PartReport> {
  const listeners = [
    [NONE, []],
    [NONE_AGAIN, []],
  ] as const;
  const { ratio, table } = await telemetryRace(listeners, [[UNHEARD, channelSink()]], NONE_AGAIN, isQuick);
  return {
    tables: [table],
    figures: [atMost(`no network: ${UNHEARD} / ${NONE}`, ratio(UNHEARD, NONE), UNHEARD_TIMES_MAX)],
  };
}
