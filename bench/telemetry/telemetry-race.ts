import { setImmediate as nextTurn } from "node:timers/promises";
import type { HubOptions } from "../../src/http/hub-options.ts";
import type { Sink } from "../../src/telemetry/sink.ts";
import { createTelemetry } from "../../src/telemetry/telemetry.ts";
import { CALLERS, hubRequest, oneUrl } from "../hub/callers.ts";
import { hubWithWideLimits } from "../hub/hubs.ts";
import { InstantWire } from "../hub/instant-wire.ts";
import { RequestCase } from "../hub/request-case.ts";
import type { BenchTable } from "../kit/report.ts";
import { race, timingOptions } from "../kit/timing.ts";

type Listeners = NonNullable<HubOptions["telemetry"]>;

export const NONE = "no telemetry";
const ORIGIN = "https://api.example.org";

/**
 * Ends a sample of every case in the same way. V8 collects young objects when the event loop turns: a sink that writes
 * would pay for the objects of its requests, and a listener would leave them to the next case.
 */
async function finish(): Promise<void> {
  await nextTurn();
}

/** Compares hubs with these listeners and hubs with these sinks. The table has ratios to NONE and to `base`. */
export async function telemetryRace(
  listeners: readonly (readonly [string, Listeners])[],
  sinks: readonly (readonly [string, Sink])[],
  base: string,
  isQuick: boolean,
) {
  const dispatcher = new InstantWire();
  const url = oneUrl(ORIGIN);
  const sendWith = async (telemetry: Listeners) =>
    hubRequest(await hubWithWideLimits({ dispatcher, cache: false, telemetry }), url);
  const cases: RequestCase[] = [];
  for (const [name, telemetry] of listeners) cases.push(new RequestCase(name, await sendWith(telemetry), finish));
  const telemetries = sinks.map(([name, sink]) => ({ name, sink, telemetry: createTelemetry({ sinks: [sink] }) }));
  for (const { name, sink, telemetry } of telemetries)
    cases.push(
      new RequestCase(name, await sendWith([telemetry.listener]), async () => {
        if (sink.flush !== undefined) await telemetry.flush();
        await finish();
      }),
    );
  const options = timingOptions(isQuick);
  await race(cases, options);
  for (const { telemetry } of telemetries) await telemetry.close();
  const caseOf = (name: string): RequestCase => {
    const found = cases.find(one => one.name === name);
    if (found === undefined) throw new RangeError(`there is no case ${name}`);
    return found;
  };
  const ratio = (name: string, other: string) => caseOf(name).cpuRatio(caseOf(other), options.rounds);
  const us = (name: string) => caseOf(name).cpuUs(options.rounds);
  const table: BenchTable = {
    title: `processor time of a request over a wire that answers at once, in microseconds, ${CALLERS} callers`,
    notes: ["each request makes four events; the time to write them is included"],
    columns: ["case", "us/request", "added us", `times ${NONE}`, `times ${base}`],
    rows: cases.map(({ name }) => [name, us(name), us(name) - us(NONE), ratio(name, NONE), ratio(name, base)]),
  };
  return { ratio, table };
}
