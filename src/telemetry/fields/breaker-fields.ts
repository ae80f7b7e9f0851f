import { type EventSpecs, host, role } from "./event-spec.ts";

const result = {
  host,
  role,
  status: ["number?", "status of the response; absent when there was none"],
  state: ["text", "state of the circuit before the call changed it: `closed`, `open` or `half_open`"],
} as const;

/** The events of the breakers. */
export const BREAKER_SPECS = {
  breaker_before_call: {
    about: "A breaker decided whether a call may be made. Every refusal is recorded; allowed calls are sampled.",
    fields: {
      host,
      role,
      resolver: ["text?", "resolver that made the call"],
      allowed: ["flag", "true when the call may be made"],
      state: ["text", "`closed`, `open` or `half_open`"],
      reason: [
        "text?",
        "why the call was refused: `failures`, `retry-after`, `rolling-window`, `slow-calls` or `cli-open:…`",
      ],
      remaining_ms: ["number", "time until the circuit or cooldown ends, in ms; 0 when closed"],
      sample_rate: ["number?", "sampling rate; absent when every event is recorded"],
    },
  },
  breaker_success: {
    about: "A call succeeded.",
    fields: { ...result, fail_counter: ["number", "failures in a row after it"] },
  },
  breaker_failure: {
    about: "A call failed.",
    fields: {
      ...result,
      fail_counter: [
        "number",
        "failures in a row after it, or throttles since the last success if those are more; 1 for a trial call",
      ],
      exc_type: ["text?", "name or code of the network error; absent for a response"],
      msg: ["text?", "message of the network error, without URLs; absent for a response"],
      retry_after_s: ["number?", "Retry-After that the response asked for, in s"],
      cooldown_s: [
        "number?",
        "the cooldown that a throttle with Retry-After starts, at most `retry_after_cap_s`, in s",
      ],
    },
  },
  breaker_state_change: {
    about: "A circuit opened, became half-open or closed. Never sampled.",
    fields: {
      host: ["text?", "absent for the circuit of a resolver"],
      role: ["text?", "absent for the circuit of a resolver"],
      resolver: ["text?", "resolver whose circuit changed"],
      old: ["text", "`closed`, `open` or `half_open`"],
      new: ["text", "`closed`, `open` or `half_open`"],
      reset_timeout_s: ["number", "when opened: time until half-open, in s"],
      last_rate_delay_ms: ["number?", "rate_delay_ms of the last call to the host"],
      from_peer: ["flag?", "true when another process caused the change"],
    },
  },
  breaker_cooldown_set: {
    about:
      "A cooldown was set for a host: all its roles are refused until it ends, or the one that an operator named. Emitted " +
      "again for the cooldown that is left when another one of the host ended early, or was set for a shorter time.",
    fields: {
      host: ["text", "canonical host, or `resolver <name>` for an operator's order"],
      role: ["text?", "present when an operator has opened this role alone"],
      until: ["number", "end of the cooldown, in epoch ms"],
      reason: ["text", "`retry-after`, `rolling-window`, `slow-calls` or `cli-open:…`"],
      from_peer: ["flag?", "true when another process set it"],
    },
  },
  breaker_cooldown_ended: {
    about: "A cooldown ended early, and no other one of the host is left.",
    fields: {
      host: ["text", "canonical host, or `resolver <name>` for an operator's order"],
      role: ["text?", "present when an operator had opened this role alone"],
      by: ["text", "`success` or `operator`"],
    },
  },
  breaker_shadow: {
    about: "Shadow mode: the call was sent; in enforce mode the breaker would have refused it.",
    fields: {
      host,
      role,
      reason: ["text", "`failures`, `retry-after`, `rolling-window`, `slow-calls` or `cli-open:…`"],
      remaining_ms: ["number", "remaining time of the circuit or cooldown, in ms"],
      decided_by: ["text?", "the setting that decided and where it was set, as in `fail_max 5 (breakers.yaml:12)`"],
    },
  },
  breaker_reset_raised: {
    about: "reset_timeout was raised, because the host keeps sending longer Retry-After values.",
    fields: { host, old_s: ["number", "reset_timeout before, in s"], new_s: ["number", "reset_timeout after, in s"] },
  },
} satisfies Partial<EventSpecs>;
