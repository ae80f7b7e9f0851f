#!/usr/bin/env node
"use strict";

require("./node-version.cjs")("docstokg", () => import("../dist/cli/docstokg.js"));
