import type { LawMaker } from "./law.ts";

/** The errors by which the hub itself refuses a call. */
const REFUSALS: ReadonlySet<unknown> = new Set(["DOCSTOKG_RATE_LIMITED", "DOCSTOKG_BUSY", "DOCSTOKG_BREAKER_OPEN"]);

/** L4: every refusal names the setting that decided: a line of the policy, a header of the server, or an order. */
export const explainedRefusals: LawMaker = {
  title: "every refusal names the setting behind it",
  make: (_plan, occasion) => ({
    check: fact => {
      if (fact.kind !== "event" || fact.event.event_type !== "http_request") return undefined;
      const { error, decided_by, host, role } = fact.event;
      if (!REFUSALS.has(error)) return undefined;
      occasion();
      return decided_by === undefined
        ? `a call to ${host} (${role}) was refused with ${error} and names no setting`
        : undefined;
    },
  }),
};
