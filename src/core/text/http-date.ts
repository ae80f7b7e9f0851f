/**
 * The three date forms of RFC 9110, section 5.6.7, as epoch milliseconds.
 *
 * `Date.parse` cannot be used: it accepts `"2"`, local times and other texts, with different results in each engine,
 * and a header that is not a date must not become a wait. Days are computed here, because core does not use Date.
 */

const MONTHS = "jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec";
const TIME = "(?<hour>[01]\\d|2[0-3]):(?<minute>[0-5]\\d):(?<second>[0-5]\\d|60)";

/** `Sun, 06 Nov 1994 08:49:37 GMT`, the only form a server may still generate. */
const IMF_FIXDATE = new RegExp(
  `^(?:Mon|Tue|Wed|Thu|Fri|Sat|Sun), (?<day>\\d\\d) (?<month>${MONTHS}) (?<year>\\d{4}) ${TIME} GMT$`,
  "i",
);
/** `Sunday, 06-Nov-94 08:49:37 GMT`. */
const RFC_850 = new RegExp(
  `^(?:Mon|Tues|Wednes|Thurs|Fri|Satur|Sun)day, (?<day>\\d\\d)-(?<month>${MONTHS})-(?<shortYear>\\d\\d) ${TIME} GMT$`,
  "i",
);
/** `Sun Nov  6 08:49:37 1994`, in UTC although the text has no time zone. */
const ASCTIME = new RegExp(
  `^(?:Mon|Tue|Wed|Thu|Fri|Sat|Sun) (?<month>${MONTHS}) (?<day>[ \\d]\\d) ${TIME} (?<year>\\d{4})$`,
  "i",
);

const DAY_MS = 86_400_000;
const MEAN_YEAR_MS = 365.2425 * DAY_MS;

/**
 * Undefined when the text has none of the three forms or names a day that does not exist.
 * The case does not matter: the standard makes dates case-sensitive, but servers exist that write `GMT` in small letters.
 * The weekday must be a valid name but may be the wrong one: the date is still what the server means.
 * A leap second counts as the first second of the next minute.
 * @param referenceMs decides the century of a two-digit year: never more than 50 years ahead of it.
 */
export function parseHttpDate(text: string, referenceMs: number): number | undefined {
  const fields = (IMF_FIXDATE.exec(text) ?? RFC_850.exec(text) ?? ASCTIME.exec(text))?.groups;
  if (fields === undefined) return undefined;

  const { month: monthName = "", day: dayText, hour, minute, second, year: longYear, shortYear } = fields;
  const month = MONTHS.indexOf(monthName.toLowerCase()) / 4 + 1;
  const day = Number(dayText);
  const timeMs = ((Number(hour) * 60 + Number(minute)) * 60 + Number(second)) * 1000;
  const year =
    shortYear === undefined
      ? Number(longYear)
      : fullYear(Number(shortYear), year => epochDay(year, month, day) * DAY_MS + timeMs, referenceMs);

  if (!Number.isInteger(year) || day < 1 || day > daysInMonth(year, month)) return undefined;
  return epochDay(year, month, day) * DAY_MS + timeMs;
}

/** The latest year with these two digits that is at most fifty years after the reference. */
function fullYear(shortYear: number, instantMs: (year: number) => number, referenceMs: number): number {
  // A mean year differs from the calendar by less than two years in total, so one correction below is enough.
  const yearAtMost = 1970 + Math.ceil(referenceMs / MEAN_YEAR_MS) + 51;
  const year = yearAtMost - ((((yearAtMost - shortYear) % 100) + 100) % 100);
  return instantMs(year - 50) > referenceMs ? year - 100 : year;
}

function daysInMonth(year: number, month: number): number {
  if (month === 2) return year % 4 === 0 && (year % 100 !== 0 || year % 400 === 0) ? 29 : 28;
  return month === 4 || month === 6 || month === 9 || month === 11 ? 30 : 31;
}

/**
 * Days since 1 January 1970 in the Gregorian calendar, carried back before its introduction.
 * Years start in March, so that the leap day is the last day of its year and needs no special case.
 */
function epochDay(year: number, month: number, day: number): number {
  const marchYear = month > 2 ? year : year - 1;
  const dayOfYear = Math.floor((153 * (month > 2 ? month - 3 : month + 9) + 2) / 5) + day - 1;
  const leapDays = Math.floor(marchYear / 4) - Math.floor(marchYear / 100) + Math.floor(marchYear / 400);
  return marchYear * 365 + leapDays + dayOfYear - 719_468;
}
