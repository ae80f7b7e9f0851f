#!/usr/bin/env node
"use strict";

require("./node-floor.cjs")("ontofetch", () => import("../dist/cli/ontofetch.js"));
