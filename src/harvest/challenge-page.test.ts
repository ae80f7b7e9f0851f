import assert from "node:assert/strict";
import { test } from "node:test";
import { challengeIn } from "./challenge-page.ts";

const ACCESS_DENIED = "<html><title>Access Denied</title>";

test("a page of Akamai is recognised by its title and reference number, or by its host for errors", () => {
  assert.equal(challengeIn(`${ACCESS_DENIED}<p>Reference&#32;&#35;18&#46;5</html>`), "blocked by Akamai");
  assert.equal(challengeIn('<a href="https://errors.edgesuite.net/18.5">'), "blocked by Akamai");
  assert.equal(challengeIn(`${ACCESS_DENIED}<p>Log in to read this article.</html>`), undefined);
});

test("a page of four megabytes that repeats the beginning of a mark is read once", () => {
  for (const part of [ACCESS_DENIED, "<title>access denied", "<title> ", "<title>", "datadome ", "checking "])
    assert.equal(challengeIn(part.repeat((4 * 2 ** 20) / part.length)), undefined, part);
});

test("a page of DataDome has its name shortly before a CAPTCHA; a page that only loads its script is an article", () => {
  const script = '<script src="https://js.datadome.co/tags.js"></script>';
  assert.equal(challengeIn(`${script}${"x".repeat(150)} captcha`), "DataDome challenge");
  assert.equal(challengeIn(`${script.repeat(5)}<p>Captcha</p>`), "DataDome challenge");
  assert.equal(challengeIn(`datadomex datadome datadomex\n${"x".repeat(170)}CAPTCHA`), "DataDome challenge");
  assert.equal(challengeIn(`${script}${"x".repeat(300)} captcha`), undefined);
});
