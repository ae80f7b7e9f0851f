/** Secrets of several shapes. Each of them must be found in no output. */
export const SECRETS = {
  word: "hunter2",
  jwt: "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiJodW50ZXIifQ.c2lnbmF0dXJlLXBhcnQ",
  mail: "planted.reader@example.org",
  random: "9f86d081884c7d659a2feaa0c55ad015",
} as const;
