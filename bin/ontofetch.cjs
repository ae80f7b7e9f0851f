#!/usr/bin/env node
"use strict";

require("./node-version.cjs")("ontofetch", () => import("../dist/cli/ontofetch.js"));
