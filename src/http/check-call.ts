import { quote } from "../core/text/quote.ts";
import { amountsProblem } from "../limiter/charge.ts";
import { ROLES } from "../policy/roles.ts";
import { CALL_KEYS, type CallOptions } from "./call-options.ts";

interface ValueRule {
  readonly isValid: (value: unknown) => boolean;
  readonly expected: string;
  /** The value may be a secret: messages do not quote it. */
  readonly isSecret?: boolean;
  /** Called for a value that `isValid` accepts: what is wrong with one of its parts. */
  readonly problemIn?: (value: object) => string | undefined;
}

const isNumber = (value: unknown): value is number => typeof value === "number" && !Number.isNaN(value);
const atLeastZero: ValueRule = { isValid: value => isNumber(value) && value >= 0, expected: "a number of at least 0" };
const aFunction: ValueRule = { isValid: value => typeof value === "function", expected: "a function" };
const aFlag: ValueRule = { isValid: value => typeof value === "boolean", expected: "true or false" };
const aName: ValueRule = {
  isValid: value => typeof value === "string" && value !== "",
  expected: "a text that is not empty",
};

/** The valid values of call options. Whether the policy has a service, or allows a weight, is checked by the gate. */
const RULES: Readonly<Record<keyof CallOptions, ValueRule>> = {
  role: {
    isValid: value => (ROLES as readonly unknown[]).includes(value),
    expected: `one of ${ROLES.join(", ")}`,
  },
  resolver: aName,
  service: aName,
  partition: { ...aName, isSecret: true },
  weight: { isValid: value => Number.isSafeInteger(value) && Number(value) >= 1, expected: "an integer of at least 1" },
  costs: {
    isValid: value => typeof value === "object" && value !== null && !Array.isArray(value),
    expected: "an object such as { credits: 10 }",
    problemIn: amountsProblem,
  },
  settleCosts: aFunction,
  outcome: aFunction,
  maxWaitMs: atLeastZero,
  maxBreakerWaitMs: atLeastZero,
  deadlineMs: { isValid: value => isNumber(value) && value > 0, expected: "a number above 0" },
  offline: aFlag,
  staleOnDisconnect: aFlag,
  cacheLifetimeMs: atLeastZero,
  refusals: { isValid: value => value === "throw" || value === "respond", expected: '"throw" or "respond"' },
  maxRedirections: {
    isValid: value => Number.isInteger(value) && Number(value) >= 0,
    expected: "a whole number of at least 0",
  },
  idempotent: aFlag,
};

/** Throws a RangeError that names the option, for the first invalid value. Options that are not given cost no time. */
export function checkCall(call: CallOptions): void {
  for (const key in call) {
    const problem = problemOf(key as keyof CallOptions, Reflect.get(call, key));
    if (problem !== undefined) throw new RangeError(problem);
  }
}

/** Every option with an invalid value, and what is wrong with it. */
export function callProblems(call: CallOptions): readonly { readonly key: string; readonly message: string }[] {
  return CALL_KEYS.flatMap(key => {
    const message = problemOf(key, call[key]);
    return message === undefined ? [] : [{ key, message }];
  });
}

function problemOf(key: keyof CallOptions, value: unknown): string | undefined {
  // A call may have keys without a rule, such as `fetchCall`.
  const rule: ValueRule | undefined = RULES[key];
  if (value === undefined || rule === undefined) return undefined;
  if (rule.isValid(value)) return rule.problemIn?.(value as object);
  return `${key} must be ${rule.expected}${rule.isSecret ? "" : `, not ${typeof value === "string" ? quote(value) : String(value)}`}`;
}
