/** The rules of `policy check`, by name, so that a CI job can tell them apart. */
export type FindingRule =
  | "bound-below-spacing"
  | "cost-above-limit"
  | "counted-apart"
  | "dead-override"
  | "duplicate-service"
  | "extends-none"
  | "key-gain"
  | "looser-than-shipped"
  | "orphaned-member"
  | "partial-override"
  | "redundant-window"
  | "role-above-total"
  | "shadow-mode"
  | "similar-host"
  | "slots-below-rate"
  | "stale-number"
  | "unknown-variable"
  | "unused-breaker"
  | "unused-tier";

/** A valid setting that probably does not have the intended effect, or a hint. */
export interface PolicyFinding {
  readonly rule: FindingRule;
  /** `--strict` fails on warnings; a notice needs no change of your policy. */
  readonly severity: "warning" | "notice";
  readonly message: string;
}

export function warning(rule: FindingRule, message: string): PolicyFinding {
  return { rule, severity: "warning", message };
}

export function notice(rule: FindingRule, message: string): PolicyFinding {
  return { rule, severity: "notice", message };
}
