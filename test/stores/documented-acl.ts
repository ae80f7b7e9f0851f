import assert from "node:assert/strict";
import { readFile } from "node:fs/promises";

/** The rights of a Redis user as docs/guides/stores.md lists them: what follows `ACL SETUSER`. */
export async function aclOf(kind: "server" | "sentinel"): Promise<string> {
  const text = await readFile(new URL("../../docs/guides/stores.md", import.meta.url), "utf8");
  const lines = text.split("\n").filter(line => line.startsWith("ACL SETUSER "));
  const line = lines[kind === "server" ? 0 : 1];
  assert.ok(line !== undefined, "docs/guides/stores.md has a line ACL SETUSER for servers and one for sentinels");
  return line.slice("ACL SETUSER ".length);
}
