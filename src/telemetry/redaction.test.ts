import assert from "node:assert/strict";
import { test } from "node:test";
import { keepingSink } from "../../test/telemetry/kit.ts";
import { createTelemetry } from "./telemetry.ts";

test("no secret of a URL or a header reaches a sink", () => {
  const sink = keepingSink();
  const { listener } = createTelemetry({ sinks: [sink] });
  const messages = [
    "connect redis://user:hunter2@cache.example.org/0 failed",
    "GET https://api.example.org/x?api_key=hunter2&q=1&apikey=hunter2;token=hunter2",
    "https://api.example.org/?email=hunter2@example.org&mailto=hunter2@example.org",
    "sent Authorization: Bearer hunter2 and authorization=hunter2",
    'headers {"Authorization": "Basic aHVudGVyMg=="}',
    "the token was bearer hunter2hunter2",
    "password = hunter2, access_token=hunter2",
    'X-API-Key: hunter2, {"token": "hunter2"}, mailto:hunter2@example.org',
    "https://api.example.org/?key=hunter2&sig=hunter2",
    "options { api_key: 'hunter2', password='hunter2' }",
    "client_secret=hunter2 refresh_token=hunter2 s2_api_key=hunter2 subscription_key=hunter2",
    "pwd: hunter2",
    "signature: hunter2",
    "sig%3Dhunter2",
    "Authorization: Negotiate hunter2",
    'authorization: Digest username="hunter2", response="hunter2"',
    "Cookie: a=hunter2; b=hunter2",
    "Set-Cookie: sid=hunter2; Path=/; HttpOnly",
    "fetch failed: url=https://api.example.org/x?q=1&api_key=hunter2",
    'the body was {"client_secret":"hunter2","password":"hunter2',
    "https://login.example.org/cb?code=hunter2&state=1&session=hunter2",
    "X-ELS-Insttoken: hunter2, X-ELS-APIKey: hunter2, x-session-id: hunter2",
    "https://s3.example.org/x?X-Amz-Credential=hunter2&X-Amz-Signature=hunter2",
    "jwt=hunter2 JSESSIONID=hunter2 ticket=hunter2 insttoken=hunter2 wskey=hunter2",
    "invalid API key: hunter2",
    "write to hunter2@example.org, <hunter2.x+y@mail.example.org>",
    "config.api_key=hunter2 headers.authorization: hunter2 https://a.example.org/?auth.token=hunter2",
    "docstokg run --api-key hunter2 --token=hunter2 list.csv",
    'spawn docstokg ["run","--password","hunter2"] and headers ["x-api-key","hunter2"]',
    "the body was <config><api_key>hunter2</api_key></config>",
    String.raw`{"body":"{\"api_key\":\"hunter2\"}"}`,
    "api_key:\n  hunter2\nhost: a.example.org",
    "the server wanted Bearer hunter2 or Basic aHVudGVyMg==",
    "q%3D1%26api_key%3Dhunter2",
    "redirect to https://a.example.org/?next=https%3A%2F%2Fb.example.org%2F%3Fq%3D1%26api_key%3Dhunter2",
  ];
  for (const message of messages) listener({ event_type: "cache_trouble", message });
  listener({ event_type: "breaker_cooldown_set", host: "a.example", until: 1, reason: "cli-open:token=hunter2" });
  const written = JSON.stringify(sink.events);
  assert.ok(!written.includes("hunter2") && !written.includes("aHVudGVyMg"), written);
  assert.match(written, /redis:\/\/…@cache\.example\.org\/0 failed/);
  assert.match(written, /q=1/);
});

test("identifiers, hashes and long lists of different texts are kept in their own fields", () => {
  const sink = keepingSink();
  const { listener } = createTelemetry({ sinks: [sink] });
  const hash = "0123456789abcdef".repeat(4);
  for (let index = 0; index < 1000; index += 1)
    for (const message of [`10.1234/abc.${index} not found`, `token=hunter2-${index}`])
      listener({ event_type: "cache_trouble", message });
  listener({ event_type: "policy_loaded", config_hash: hash });
  const messages = sink.events.flatMap(event => (event.event_type === "cache_trouble" ? [event.message] : []));
  assert.deepEqual(
    messages,
    Array.from({ length: 1000 }, (_, index) => [`10.1234/abc.${index} not found`, "token=…"]).flat(),
  );
  assert.equal(sink.events.at(-1)?.config_hash, hash);
});
