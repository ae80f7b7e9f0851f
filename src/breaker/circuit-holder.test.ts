import assert from "node:assert/strict";
import { test } from "node:test";
import { host, setUp } from "../../test/breaker/kit.ts";
import { breakersOf } from "../gate/registry-breakers.ts";

test("releasing a probe ends that probe only", async () => {
  const { registry, time } = setUp();
  for (let call = 0; call < 5; call += 1) registry.onFailure({ host, role: "artifact", status: 503 });
  await time.advance(60_000);
  const [first] = [registry.allow({ host, role: "artifact" }), registry.allow({ host, role: "artifact" })];
  first?.release();
  assert.equal(registry.state(host).roles[0]?.probes, 1);
});

test("a circuit that an operator has closed may be evicted, also after calls that never reached the host", () => {
  const { registry } = setUp();
  for (let call = 0; call < 5; call += 1)
    registry.onFailure({ host, error: Object.assign(new Error("refused"), { code: "ECONNREFUSED" }) });
  const circuit = breakersOf(registry).table.get(host)?.circuits.metadata;
  assert.deepEqual([circuit?.isLocalOnly, circuit?.isFresh], [true, false]);
  registry.close(host);
  assert.deepEqual([circuit?.isLocalOnly, circuit?.isFresh], [false, true]);
});
