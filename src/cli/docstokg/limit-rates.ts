import { hostname, userInfo } from "node:os";
import { ORDER_SECONDS_MAX } from "../../breaker/order-seconds.ts";
import { formatRates, parseRates, type Rate } from "../../core/limits/rate.ts";
import { redactedText } from "../../core/text/redaction.ts";
import { type GivenLimit, giveLimitOrder, type RateRequest } from "../../http/limit-command.ts";
import type { LimitOrderSnapshot } from "../../limiter/key-snapshot.ts";
import { type LimitTarget, limitsText, orderedLimitsText } from "../../policy/limit-order-check.ts";
import { systemTime } from "../../time/system-time.ts";
import { ExitCode } from "../exit-code.ts";
import { formatUtc, formatWait } from "../output/duration.ts";
import { printable } from "../output/printable.ts";
import type { Flags, Io, Subcommand } from "../program.ts";
import { readAll, usageError, wholeNumberFlag } from "../usage-error.ts";
import { effectLines, effectRows } from "./breaker-outcome.ts";
import { targetName } from "./breaker-target.ts";
import { addOrderFlags, LIMIT_TARGET, limitTargetOf } from "./limit-orders.ts";
import { ACKNOWLEDGED_WITHIN_MS, DURATION, durationOf, openForOrder, reasonOf, targetOf } from "./operator-order.ts";

export const set: Subcommand = {
  name: "set",
  summary: 'change the limits of a host or service in all processes, for a time or until "limits reset"',
  configure: command => {
    command
      .argument("<target>", `${LIMIT_TARGET}; <host>:total for all roles together`)
      .argument(
        "[rate]",
        "the rates of each role, such as 2/SECOND or 2/SECOND+100/HOUR; without --force they only tighten the policy",
      )
      .option("--reason <text>", "reason, shown in waits, refusals, events and tables (required)")
      .option(
        "--max-concurrent <number>",
        "maximum requests in flight, counted like max_concurrent of the policy (default: unchanged)",
      )
      .option(
        "--for <duration>",
        `how long the limits apply, ${DURATION}; "limits reset" ends them earlier (default: a year)`,
      )
      .option("--force", "replace the limits of the policy, even if the new ones are looser");
    addOrderFlags(command);
  },
  run: async ([target = "", rate], flags, io) => {
    const isForced = flags["force"] === true;
    const cap = flags["maxConcurrent"];
    const read = () => {
      const { reasonAndAuthor, ...order } = readAll({
        rates: () => ratesOf(rate, cap !== undefined),
        maxConcurrent: () => (cap === undefined ? undefined : wholeNumberFlag("--max-concurrent", cap, 1)),
        ms: () => (flags["for"] === undefined ? ORDER_SECONDS_MAX * 1000 : durationOf(flags["for"])),
        reasonAndAuthor: () => reasonAndAuthorOf(flags),
      });
      return { kind: "set-limit" as const, isForced, ...order, ...reasonAndAuthor };
    };
    return sendOrder(target, read, flags, io);
  },
};

export const reset: Subcommand = {
  name: "reset",
  summary: 'end "limits set" in all processes: the limits of the policy apply again',
  configure: command => {
    command
      .argument("<target>", `${LIMIT_TARGET}; <host>:total to reset only the limits of all roles together`)
      .option("--reason <text>", "reason, shown in events", "operator");
    addOrderFlags(command);
  },
  run: async ([target = ""], flags, io) =>
    sendOrder(target, () => ({ kind: "reset-limit", ...reasonAndAuthorOf(flags) }), flags, io),
};

async function sendOrder(text: string, read: () => RateRequest, flags: Flags, io: Io): Promise<ExitCode> {
  const { connection: opened, order: request } = await openForOrder(flags, io, read);
  await using connection = opened;
  const target = limitTargetOf(await targetOf(text, connection));
  const { operator, policy, storeName } = connection;
  const { time = systemTime } = io;
  const timeoutMs = ACKNOWLEDGED_WITHIN_MS;
  const options = { policy, time, timeoutMs, hint: "--force sets it anyway" };
  const given = await giveLimitOrder(operator, target, request, options).catch(error => {
    const command = request.kind === "set-limit" ? "limits set" : "limits reset";
    throw error instanceof RangeError ? usageError(command, error.message) : error;
  });
  if (flags["json"]) io.stdout.write(`${JSON.stringify(jsonOf(target, request, given))}\n`);
  else io.stdout.write(`${orderLines(request, given, storeName).map(printable).join("\n")}\n`);
  return given.acknowledgements.every(({ effect }) => effect === "applied") ? ExitCode.ok : ExitCode.partial;
}

function jsonOf(target: LimitTarget, request: RateRequest, given: GivenLimit) {
  const { targets, kept, looser, remainingMs, storedMs, acknowledgements } = given;
  return {
    target: targetName(target),
    role: target.role ?? null,
    rates: request.kind === "set-limit" && request.rates.length > 0 ? formatRates(request.rates) : null,
    maxConcurrent: request.kind === "set-limit" ? (request.maxConcurrent ?? null) : null,
    until: remainingMs > 0 ? new Date(storedMs + remainingMs).toISOString() : null,
    reason: request.reason,
    by: request.by,
    changed: targets.map(targetName),
    kept,
    looser,
    ...effectRows(acknowledgements),
  };
}

function orderLines(request: RateRequest, given: GivenLimit, storeName: string): readonly string[] {
  const { targets, kept, looser, remainingMs, storedMs, acknowledgements } = given;
  const what =
    request.kind === "set-limit"
      ? `${limitsText(request)} until ${formatUtc(storedMs + remainingMs)} (${formatWait(remainingMs)}), by ${request.by}`
      : "the limits of the policy apply again";
  return [
    ...targets.map(target => `${targetName(target)}: ${what}`),
    ...kept.map(each => `${targetName(each)} keeps ${each.configured} of the policy, which is stricter`),
    ...looser.map(each => `${targetName(each)}: LOOSER than the policy, which has ${each.configured}`),
    ...effectLines({ acknowledgements, storeName, answerTimeoutMs: ACKNOWLEDGED_WITHIN_MS }),
  ];
}

/** `2/SECOND for another 290 s instead of 10/SECOND, ordered by ann@ops: quota`. */
export function orderText(order: LimitOrderSnapshot, ageMs: number): string {
  const { rates, maxConcurrent, remainingMs, isLooser, policyRates, policyMaxConcurrent, by, reason } = order;
  const left = formatWait(Math.max(0, remainingMs - ageMs));
  const looser = isLooser ? "LOOSER than the policy, " : "";
  const ordered = orderedLimitsText(rates, maxConcurrent);
  const replaced = orderedLimitsText(rates === "" ? "" : policyRates, policyMaxConcurrent) || "no limit";
  return `${looser}${ordered} for another ${left} instead of ${replaced}, ordered by ${by}: ${reason}`;
}

function ratesOf(text: string | undefined, isOptional: boolean): readonly Rate[] {
  if (text === undefined && !isOptional)
    throw usageError("[rate]", "expected rates, such as 2/SECOND, or --max-concurrent");
  if (text === undefined) return [];
  try {
    return parseRates(text);
  } catch (error) {
    if (error instanceof RangeError) throw usageError("[rate]", error.message);
    throw error;
  }
}

/** The reason and the author of an order. Stored without secrets, because every process prints them. */
function reasonAndAuthorOf(flags: Flags): { readonly reason: string; readonly by: string } {
  return { reason: redactedText(reasonOf(flags["reason"])), by: `${userName()}@${hostname()}` };
}

/** `userInfo` throws if the user has no entry in the password database. */
function userName(): string {
  try {
    return userInfo().username;
  } catch {
    return `uid ${process.getuid?.() ?? "unknown"}`;
  }
}
