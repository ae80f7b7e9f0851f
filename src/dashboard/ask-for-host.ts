import { canonicalHost } from "../core/text/host.ts";
import { quote } from "../core/text/quote.ts";
import type { Operator } from "../http/operator.ts";
import { commonName } from "../policy/partition-name.ts";
import { serviceName, withoutTier } from "../policy/service-name.ts";
import type { Time } from "../time/time.ts";
import type { AskResult } from "./dashboard-state.ts";

const ANSWERED_WITHIN_MS = 2000;
const SERVICE = /^[\w.-]{1,100}$/;

/** Asks the running processes to list a host, or a service of that name. Rejects with a RangeError for any other text. */
export async function askForHost(operator: Operator, name: string, time: Time): Promise<AskResult> {
  const units = unitsOf(name);
  const answers = await operator.ask(units, time, ANSWERED_WITHIN_MS);
  const isListed = answers.some(({ process: { snapshot } }) =>
    snapshot.keys.some(({ key }) => units.includes(withoutTier(commonName(key)))),
  );
  if (isListed) return { isListed, text: `${name} is listed now` };
  const silent = answers.filter(({ effect }) => effect === "silent").map(({ process: { pid } }) => pid);
  const text =
    silent.length === 0 ? `no running process has called ${name}` : `process ${silent.join(", ")} gave no answer`;
  return { isListed, text };
}

/** The host and the service that a name may mean. */
function unitsOf(name: string): readonly string[] {
  const service = name.replace(/^service[: ]/, "");
  const services = SERVICE.test(service) ? [serviceName(service)] : [];
  try {
    return [canonicalHost(name), ...services];
  } catch (error) {
    if (!(error instanceof RangeError) || services.length === 0) throw error;
    return services;
  }
}

/** The name that a request asks for. Throws a RangeError for a body without one. */
export function askedName(body: unknown): string {
  const name = typeof body === "object" && body !== null && "name" in body ? body.name : undefined;
  if (typeof name === "string" && name.trim() !== "" && name.length <= 300) return name.trim();
  throw new RangeError(`name must be a host or service, not ${quote(String(name))}`);
}
