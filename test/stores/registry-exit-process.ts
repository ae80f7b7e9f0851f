/** Makes one call with a registry on this store, and does not disconnect it: `node registry-exit-process.ts <store>`. */
import { BreakerRegistry } from "../../src/breaker.ts";
import type { StoreName } from "../../src/index.ts";

const [store = "memory"] = process.argv.slice(2);
const breakers = new BreakerRegistry({}, { store: store as StoreName });
await breakers.run({ host: "a.example" }, async permit => {
  permit.report({ outcome: breakers.classify({ status: 503 }), status: 503 });
});
process.stdout.write("ended\n");
