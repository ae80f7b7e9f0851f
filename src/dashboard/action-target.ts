import type { OrderTarget } from "../breaker/orders.ts";
import { commonName } from "../policy/partition-name.ts";
import { isLimitPart } from "../policy/roles.ts";
import { serviceOfName, withoutTier } from "../policy/service-name.ts";

const RESOLVER = "resolver ";

/**
 * The target of an order about circuits, cooldowns and holds. The page shows a row for each tier and each partition of a
 * host; such an order is for all of them. Those of a budget `service <name>:<host>` are those of its host.
 */
export function circuitTargetOf(row: string, role: string): OrderTarget {
  const target = targetOf(row, role);
  const service = "unit" in target ? serviceOfName(target.unit) : undefined;
  const colon = service?.indexOf(":") ?? -1;
  return service === undefined || colon < 0 ? target : { ...target, unit: service.slice(colon + 1) };
}

/** The target of an order about rates, which is for all tiers and partitions, and for all hosts of a service. */
export function limitTargetOf(row: string, role: string): OrderTarget {
  const target = targetOf(row, role);
  if ("resolver" in target || serviceOfName(target.unit) === undefined) return target;
  return { ...target, unit: target.unit.split(":", 1)[0] ?? target.unit };
}

/** The target as `hub.breakers` and `hub.limits` take it. */
export function textOfTarget(target: OrderTarget): string {
  if ("resolver" in target) return `resolver:${target.resolver}`;
  const service = serviceOfName(target.unit);
  const unit = service === undefined ? target.unit : `service:${service}`;
  return target.role === undefined ? unit : `${unit}:${target.role}`;
}

function targetOf(row: string, role: string): OrderTarget {
  if (row.startsWith(RESOLVER)) return { resolver: row.slice(RESOLVER.length) };
  return { unit: withoutTier(commonName(row)), role: isLimitPart(role) ? role : undefined };
}
