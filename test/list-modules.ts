/** With --import: prints the URL of each module that the program loads. */
import { registerHooks } from "node:module";

registerHooks({
  load(url, context, next) {
    process.stdout.write(`${url}\n`);
    return next(url, context);
  },
});
