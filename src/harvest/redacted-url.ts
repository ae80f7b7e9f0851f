/** Query fields whose values open doors, by the names that services give them. */
const SECRET =
  /^(?:.*(?:key|token|secret|signature|password|credential|session|auth).*|sig|e?mail|mailto|x-(?:amz|goog)-.*)$/i;

/** An address as others may see it: without credentials, and with what may be a secret in its query covered. */
export function redactedUrl(url: string): string {
  const parsed = URL.parse(url);
  if (parsed === null) return "(not an address)";
  if (parsed.username !== "" || parsed.password !== "") {
    parsed.username = "";
    parsed.password = "";
  }
  parsed.hash = "";
  for (const name of new Set(parsed.searchParams.keys())) if (SECRET.test(name)) parsed.searchParams.set(name, "…");
  return parsed.href;
}
