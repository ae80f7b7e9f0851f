/** Names of query parameters that contain secrets or mail addresses. */
const SECRET =
  /^(?:.*(?:key|token|secret|signature|password|credential|session|auth).*|sig|e?mail|mailto|x-(?:amz|goog)-.*)$/i;

/** A URL for messages and files: without credentials, and with secret query values replaced by `…`. */
export function redactedUrl(url: string): string {
  const parsed = URL.parse(url);
  if (parsed === null) return "(invalid URL)";
  if (parsed.username !== "" || parsed.password !== "") {
    parsed.username = "";
    parsed.password = "";
  }
  parsed.hash = "";
  for (const name of new Set(parsed.searchParams.keys())) if (SECRET.test(name)) parsed.searchParams.set(name, "…");
  return parsed.href;
}
