/**
 * `unheard-pair.ts channel|none <rounds>`: prints the processor time of a request of a hub with a channel without
 * subscribers, or without telemetry, divided by that of a hub without telemetry.
 */
import { setImmediate as nextTurn } from "node:timers/promises";
import type { HubOptions } from "../../src/http/hub-options.ts";
import { channelSink } from "../../src/telemetry/sinks/channel-sink.ts";
import { createTelemetry } from "../../src/telemetry/telemetry.ts";
import { hubRequest, oneUrl } from "../hub/callers.ts";
import { hubWithWideLimits } from "../hub/hubs.ts";
import { InstantWire } from "../hub/instant-wire.ts";
import { RequestCase } from "../hub/request-case.ts";
import { pairedRatio } from "../kit/paired.ts";

const CALLS = 512;

const [kind, rounds] = process.argv.slice(2);
const url = oneUrl("https://api.example.org");
const caseWith = async (telemetry: NonNullable<HubOptions["telemetry"]>) => {
  const hub = await hubWithWideLimits({ dispatcher: new InstantWire(), cache: false, telemetry });
  return new RequestCase("", hubRequest(hub, url), () => nextTurn());
};
const listeners = kind === "channel" ? [createTelemetry({ sinks: [channelSink()] }).listener] : [];
// Either of them first, because the place of its objects in memory may matter.
const isBaseFirst = Math.random() < 0.5;
const early = await caseWith(isBaseFirst ? [] : listeners);
const late = await caseWith(isBaseFirst ? listeners : []);
const [measured, base] = isBaseFirst ? [late, early] : [early, late];
process.stdout.write(String(await pairedRatio(measured, base, { rounds: Number(rounds), calls: CALLS })));
process.exit();
