import { createRequire } from "node:module";

/** The version of docstokg, from its package.json. */
export const PACKAGE_VERSION = (createRequire(import.meta.url)("../../package.json") as { readonly version: string })
  .version;
