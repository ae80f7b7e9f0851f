/** The code or name of an error. Not its message, which may quote a URL. */
export function codeOf(error: unknown): string {
  if (typeof error !== "object" || error === null) return typeof error;
  const { code, name } = error as { readonly code?: unknown; readonly name?: unknown };
  return typeof code === "string" ? code : typeof name === "string" ? name : "Error";
}
