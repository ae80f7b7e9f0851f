import assert from "node:assert/strict";
import { chmodSync, chownSync, mkdirSync, statSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { type TestContext, test } from "node:test";
import { temporaryFolder } from "../../test/temporary-folder.ts";
import { ConfigError } from "../errors.ts";
import { userStoreFile } from "./user-store-file.ts";

const userId = process.getuid?.();
const skip = userId === undefined && "the system has no user ids";

/** The folder of this user in a temporary folder that is empty. */
function userFolder(t: TestContext): string {
  const former = process.env["TMPDIR"];
  const shared = temporaryFolder("shared");
  process.env["TMPDIR"] = shared;
  t.after(() => {
    if (former === undefined) delete process.env["TMPDIR"];
    else process.env["TMPDIR"] = former;
  });
  return join(shared, `docstokg-${userId}`);
}

function assertRefused(folder: string, problem: string): void {
  assert.throws(
    () => userStoreFile({}),
    error => {
      assert.ok(error instanceof ConfigError);
      assert.ok(error.message.startsWith(`${folder}: ${problem}, so the store "multiprocess" cannot use it`));
      return true;
    },
  );
  assert.equal(userStoreFile({ XDG_RUNTIME_DIR: "/run/user/1" }), "/run/user/1/docstokg/limits.db");
}

test("without a runtime folder, the file is in a folder that only the user can read", { skip }, t => {
  const folder = userFolder(t);
  assert.equal(userStoreFile({}), join(folder, "docstokg", "limits.db"));
  assert.equal(statSync(folder).mode & 0o777, 0o700);
  assert.equal(userStoreFile({}), join(folder, "docstokg", "limits.db"));
});

test("a link in place of the folder of the user is refused", { skip }, t => {
  const folder = userFolder(t);
  symlinkSync(temporaryFolder("target"), folder);
  assertRefused(folder, "is a link");
});

test("a file in place of the folder of the user is refused", { skip }, t => {
  const folder = userFolder(t);
  writeFileSync(folder, "");
  assertRefused(folder, "is not a folder");
});

test("a folder that other users can write is refused", { skip }, t => {
  const folder = userFolder(t);
  mkdirSync(folder);
  chmodSync(folder, 0o770);
  assertRefused(folder, "can be written by other users");
});

test("a folder of another user is refused", { skip: userId !== 0 && "only root can create such a folder" }, t => {
  const folder = userFolder(t);
  mkdirSync(folder, { mode: 0o700 });
  chownSync(folder, 65_534, 65_534);
  assertRefused(folder, "belongs to another user (id 65534)");
});
