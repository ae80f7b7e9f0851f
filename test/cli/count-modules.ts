/** Preloaded with --import: prints on stderr how many modules of the package the process has loaded. */
import { registerHooks } from "node:module";

const loaded = new Set<string>();
registerHooks({
  load: (url, context, nextLoad) => {
    if (/\/dist\/.*\.js$/.test(url) && !url.includes("/node_modules/")) loaded.add(url);
    return nextLoad(url, context);
  },
});
process.on("exit", () => process.stderr.write(`${loaded.size} modules\n`));
