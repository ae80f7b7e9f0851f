/** Which requests a step affects, and when. Without the optional members it affects every request to `host`. */
export interface StepCondition {
  /** A host, a host with the beginning of a path (`www.ebi.ac.uk/ols4`), or `*` for every host. */
  readonly host: string;
  /** When the step begins, in milliseconds since the internet started. @default 0 */
  readonly fromMs?: number;
  /** When the step ends, in milliseconds since the internet started. @default never */
  readonly untilMs?: number;
  /** How many matching requests pass unchanged before the step takes effect. @default 0 */
  readonly skip?: number;
  /** How many matching requests are affected after that. @default all */
  readonly times?: number;
}

/** The effect of a step on a request. */
export type StepEffect =
  /** `status` sends an error page, `reset` closes the connection, `silence` never responds. */
  | {
      readonly effect: "outage";
      /** How the host fails. @default "status" */
      readonly how?: "status" | "reset" | "silence";
      /** The status of the error page. @default 503 */
      readonly status?: number;
    }
  /** Delays the response, or limits its speed. */
  | {
      readonly effect: "slow";
      /** Milliseconds before the first byte. @default 0 */
      readonly delayMs?: number;
      /** Speed of the body. @default unlimited */
      readonly bytesPerSecond?: number;
    }
  /** Refuses the request, as a server does above its limit. */
  | {
      readonly effect: "throttle";
      /** The status of the refusal. @default 429 */
      readonly status?: 429 | 503;
      /** Seconds in the Retry-After field. @default no Retry-After */
      readonly retryAfterS?: number;
      /** Writes Retry-After as a date. @default false */
      readonly asDate?: boolean;
    }
  /** Breaks the connection inside the body. */
  | {
      readonly effect: "truncate";
      /** How many bytes of the body are sent. @default half of them */
      readonly atBytes?: number;
    }
  /** Sends a sign-in page with status 200 instead of the response. */
  | { readonly effect: "html" }
  /** Sends a bot check of Cloudflare with status 403. */
  | { readonly effect: "challenge" }
  /** Redirects to the same URL before the response. */
  | {
      readonly effect: "redirects";
      /** How many times. */
      readonly hops: number;
    }
  /** Multiplies the limits of the host, in what it enforces and what it announces. */
  | {
      readonly effect: "limits";
      /** A limit stays at least 1. */
      readonly factor: number;
    };

/** One step of a script: a condition and an effect. */
export type ScriptStep = StepCondition & StepEffect;

const STEP_EFFECTS = ["outage", "slow", "throttle", "truncate", "html", "challenge", "redirects", "limits"];

/** @throws TypeError for a step without host or with an unknown effect. */
export function checkStep(step: ScriptStep): void {
  if (typeof step?.host !== "string" || step.host === "") {
    throw new TypeError(`script: ${JSON.stringify(step)} has no host; expected a host, a host with a path, or "*"`);
  }
  if (!STEP_EFFECTS.includes(step.effect)) {
    throw new TypeError(
      `script: unknown effect ${JSON.stringify(step.effect)}; expected one of ${STEP_EFFECTS.join(", ")}`,
    );
  }
}
