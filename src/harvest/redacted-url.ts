import { isPrivateName } from "../core/text/credentials.ts";

/** A URL for messages and files: without credentials, and with secret query values replaced by `…`. */
export function redactedUrl(url: string): string {
  const parsed = URL.parse(url);
  if (parsed === null) return "(invalid URL)";
  if (parsed.username !== "" || parsed.password !== "") {
    parsed.username = "";
    parsed.password = "";
  }
  parsed.hash = "";
  for (const name of new Set(parsed.searchParams.keys())) if (isPrivateName(name)) parsed.searchParams.set(name, "…");
  return parsed.href;
}
