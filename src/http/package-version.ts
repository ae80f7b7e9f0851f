/** The version of docstokg, as in package.json. A constant, so that programs that were bundled need no file for it. */
export const PACKAGE_VERSION = "0.1.0";
