import assert from "node:assert/strict";
import { test } from "node:test";
import { ask, workOf } from "../../../../test/testing/service-kit.ts";

test("an archived error is served with memento-datetime", () => {
  const { copies, year } = workOf("html-only");
  const kept = ask(`https://web.archive.org/web/${year}0501120000id_/${copies[0]?.url}`);
  assert.equal(kept.status, 429);
  assert.match(kept.headers["memento-datetime"] ?? "", new RegExp(`${year}`));
  const other = ask(`https://web.archive.org/web/19990101000000id_/${copies[0]?.url}`);
  assert.equal(other.status, 302);
  assert.match(other.headers["x-archive-redirect-reason"] ?? "", /found capture/);
  const excluded = ask(`https://web.archive.org/web/20200101000000id_/${workOf("cookie-loop").copies[0]?.url}`);
  assert.equal(excluded.status, 403);
  assert.match(excluded.headers["x-archive-wayback-runtime-error"] ?? "", /AdministrativeAccessControl/);
});
