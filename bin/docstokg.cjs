#!/usr/bin/env node
"use strict";

require("./node-floor.cjs")("docstokg", () => import("../dist/cli/docstokg.js"));
