/** What every backend keeps of robots.txt. */
import assert from "node:assert/strict";
import { test } from "node:test";
import type { OpenManifest } from "./manifest-kit.ts";

export function robotsContract(open: OpenManifest): void {
  test("the last robots.txt of an origin is kept with its status and its age", async t => {
    const { robots } = await open(t);
    assert.equal(await robots.find("https://a.example"), undefined);
    await robots.save("https://a.example", { status: 200, text: "User-agent: *\nDisallow: /" });
    await robots.save("https://b.example", { status: 404, text: "" });
    const found = await robots.find("https://a.example");
    assert.deepEqual([found?.status, found?.text], [200, "User-agent: *\nDisallow: /"]);
    assert.ok(found !== undefined && found.ageMs >= 0);
    await robots.save("https://a.example", { status: 200, text: "User-agent: \ud800x" });
    assert.match((await robots.find("https://a.example"))?.text ?? "", /^User-agent: .x$/);
    assert.equal((await robots.find("https://b.example"))?.status, 404);
  });

  test("a robots.txt with NUL characters is kept", async t => {
    const { robots } = await open(t);
    await robots.save("https://a.example", { status: 200, text: "User-agent: *\nDisallow: /\0x" });
    assert.match((await robots.find("https://a.example"))?.text ?? "", /^User-agent: \*\nDisallow: \//);
  });
}
