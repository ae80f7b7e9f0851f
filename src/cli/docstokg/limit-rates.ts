import { hostname, userInfo } from "node:os";
import { ORDER_SECONDS_MAX } from "../../breaker/order-seconds.ts";
import { formatRates, parseRates, type Rate } from "../../core/limits/rate.ts";
import { redactedText } from "../../core/text/redaction.ts";
import { type GivenLimit, giveLimitOrder, type RateRequest } from "../../http/limit-command.ts";
import type { LimitOrderSnapshot } from "../../limiter/key-snapshot.ts";
import type { LimitTarget } from "../../policy/limit-order-check.ts";
import { systemTime } from "../../time/system-time.ts";
import { ExitCode } from "../exit-code.ts";
import { formatUtc, formatWait } from "../output/duration.ts";
import type { Flags, Io, Subcommand } from "../program.ts";
import { usageError } from "../usage-error.ts";
import { effectLines, effectRows } from "./breaker-outcome.ts";
import { targetName } from "./breaker-target.ts";
import { addOrderFlags, LIMIT_TARGET, limitTargetOf } from "./limit-orders.ts";
import { ACKNOWLEDGED_WITHIN_MS, reasonOf, secondsOf, targetOf } from "./operator-order.ts";
import { openOperatorConnection } from "./store-connection.ts";

export const set: Subcommand = {
  name: "set",
  summary: 'change the rates of a host or service in all processes, until the time is over or "limits reset"',
  configure: command => {
    command
      .argument("<target>", LIMIT_TARGET)
      .argument(
        "<rate>",
        "the rates of each role, such as 2/SECOND or 2/SECOND+100/HOUR; they can only tighten the policy, and leave total and max_concurrent unchanged",
      )
      .requiredOption("--reason <text>", "reason, shown in waits, refusals, events and tables (required)")
      .option("--for <seconds>", 'how long (default: a year, so that "limits reset" ends it)')
      .option("--force", "let the rates replace those of the policy, also by looser ones");
    addOrderFlags(command);
  },
  run: async ([target = "", rate = ""], flags, io) => {
    const seconds = flags["for"] === undefined ? ORDER_SECONDS_MAX : secondsOf(flags["for"], "--for");
    const isForced = flags["force"] === true;
    const order = { rates: ratesOf(rate), isForced, ...signatureOf(flags) };
    return sendOrder(target, { kind: "set-limit", ms: seconds * 1000, ...order }, flags, io);
  },
};

export const reset: Subcommand = {
  name: "reset",
  summary: 'end "limits set" in all processes: the rates of the policy apply again',
  configure: command => {
    command.argument("<target>", LIMIT_TARGET).option("--reason <text>", "reason, shown in events", "operator");
    addOrderFlags(command);
  },
  run: async ([target = ""], flags, io) => sendOrder(target, { kind: "reset-limit", ...signatureOf(flags) }, flags, io),
};

async function sendOrder(text: string, request: RateRequest, flags: Flags, io: Io): Promise<ExitCode> {
  await using connection = await openOperatorConnection(flags, io);
  const target = limitTargetOf(await targetOf(text, connection));
  const { operator, policy, storeName } = connection;
  const { time = systemTime } = io;
  const timeoutMs = ACKNOWLEDGED_WITHIN_MS;
  const options = { policy, time, timeoutMs, hint: "--force sets it all the same" };
  const given = await giveLimitOrder(operator, target, request, options).catch(error => {
    throw error instanceof RangeError ? usageError("<rate>", error.message) : error;
  });
  if (flags["json"]) io.stdout.write(`${JSON.stringify(jsonOf(target, request, given, time.wallMs()))}\n`);
  else io.stdout.write(`${lines(request, given, storeName, time.wallMs()).join("\n")}\n`);
  return given.acknowledgements.every(({ effect }) => effect === "applied") ? ExitCode.ok : ExitCode.partial;
}

function jsonOf(target: LimitTarget, request: RateRequest, given: GivenLimit, nowMs: number) {
  const { targets, kept, looser, remainingMs, acknowledgements } = given;
  return {
    target: targetName(target),
    role: target.role ?? null,
    rates: request.kind === "set-limit" ? formatRates(request.rates) : null,
    until: remainingMs > 0 ? new Date(nowMs + remainingMs).toISOString() : null,
    reason: request.reason,
    by: request.by,
    changed: targets.map(targetName),
    kept,
    looser,
    ...effectRows(acknowledgements),
  };
}

function lines(request: RateRequest, given: GivenLimit, storeName: string, nowMs: number): readonly string[] {
  const { targets, kept, looser, remainingMs, acknowledgements } = given;
  const what =
    request.kind === "set-limit"
      ? `${formatRates(request.rates)} until ${formatUtc(nowMs + remainingMs)} (${formatWait(remainingMs)}), by ${request.by}`
      : "the rates of the policy apply again";
  return [
    ...targets.map(target => `${targetName(target)}: ${what}`),
    ...kept.map(each => `${targetName(each)} keeps ${each.configured} of the policy, which is stricter`),
    ...looser.map(each => `${targetName(each)}: LOOSER than the policy, which has ${each.configured}`),
    ...effectLines({ acknowledgements, storeName, waitedMs: ACKNOWLEDGED_WITHIN_MS }),
  ];
}

/** `2/SECOND for another 290 s instead of 10/SECOND, ordered by ann@ops: quota`. */
export function orderText(order: LimitOrderSnapshot, ageMs: number): string {
  const { rates, remainingMs, isLooser, policyRates, by, reason } = order;
  const left = formatWait(Math.max(0, remainingMs - ageMs));
  const looser = isLooser ? "LOOSER than the policy, " : "";
  return `${looser}${rates} for another ${left} instead of ${policyRates || "no limit"}, ordered by ${by}: ${reason}`;
}

function ratesOf(text: string): readonly Rate[] {
  try {
    return parseRates(text);
  } catch (error) {
    if (error instanceof RangeError) throw usageError("<rate>", error.message);
    throw error;
  }
}

/** The reason of the order and who gives it. Stored without secrets, because every process prints them. */
function signatureOf(flags: Flags): { readonly reason: string; readonly by: string } {
  return { reason: redactedText(reasonOf(flags["reason"])), by: `${userName()}@${hostname()}` };
}

/** A user without an entry in the system's list has only a number. */
function userName(): string {
  try {
    return userInfo().username;
  } catch {
    return `uid ${process.getuid?.() ?? "unknown"}`;
  }
}
