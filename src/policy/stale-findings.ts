import { notice, type PolicyFinding, warning } from "./finding.ts";
import type { LoadedPolicy } from "./load.ts";
import { isShippedSource } from "./shipped-policy.ts";

const MAX_AGE_DAYS = 180;
const DAY_MS = 86_400_000;
const DATE = /\b(\d{4})-(0[1-9]|1[0-2])(?:-(0[1-9]|[12]\d|3[01]))?\b/g;
const SHOWN_MAX = 5;

/** Rates whose comment names only dates of more than 180 days ago. Shipped rates give one notice together. */
export function staleFindings({ ratelimits }: LoadedPolicy, nowMs: number): readonly PolicyFinding[] {
  const stale = ratelimits.assignments.filter(assignment => {
    const { path, note } = assignment;
    const dateMs = path.at(-1) === "rates" && note !== undefined ? latestDateMs(note) : undefined;
    const isOld = dateMs !== undefined && nowMs - dateMs > MAX_AGE_DAYS * DAY_MS;
    return isOld && ratelimits.index.isInEffect(assignment);
  });
  const shipped = stale.filter(({ where }) => isShippedSource(where));
  const own = stale.filter(({ where }) => !isShippedSource(where));
  const shown = shipped.slice(0, SHOWN_MAX).map(({ path }) => path.slice(1, -1).join(" "));
  const more = shipped.length > SHOWN_MAX ? ` and ${shipped.length - SHOWN_MAX} more` : "";
  return [
    ...own.map(({ path, where, note }) =>
      warning(
        "stale-number",
        `${where}: ${path.join(".")}: the source of this number is older than ${MAX_AGE_DAYS} days (${note}); check the number, and update the date in its comment`,
      ),
    ),
    ...(shipped.length === 0
      ? []
      : [
          notice(
            "stale-number",
            `the ${shipped.length === 1 ? "source of 1 shipped rate is" : `sources of ${shipped.length} shipped rates are`} older than ${MAX_AGE_DAYS} days: ${shown.join(", ")}${more}`,
          ),
        ]),
  ];
}

/** The latest day that a comment names; of a month, its last day. */
function latestDateMs(note: string): number | undefined {
  const dates = [...note.matchAll(DATE)].map(([, year, month, day]) =>
    day === undefined
      ? Date.UTC(Number(year), Number(month), 0)
      : Date.UTC(Number(year), Number(month) - 1, Number(day)),
  );
  return dates.length === 0 ? undefined : Math.max(...dates);
}
