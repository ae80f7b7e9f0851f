/** A URL or DSN without its user name and password, for messages and tables. */
export function withoutCredentials(text: string): string {
  return text.replace(/\/\/[^\s"]*@/g, "//…@");
}
