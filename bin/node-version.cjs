"use strict";

// Only syntax that Node 10 can parse, so that an old Node prints the message below.

var OLDEST_NODE = [22, 19];

module.exports = function run(name, load) {
  var found = process.versions.node.split(".").map(Number);
  if (found[0] < OLDEST_NODE[0] || (found[0] === OLDEST_NODE[0] && found[1] < OLDEST_NODE[1])) {
    process.stderr.write(
      name + " needs Node " + OLDEST_NODE.join(".") + " or newer; this is Node " + process.versions.node + ".\n",
    );
    process.exitCode = 2;
    return;
  }
  load().then(
    function (cli) {
      return cli.main(process);
    },
    function (error) {
      var fs = require("node:fs");
      var path = require("node:path");
      // Only a missing dist/ means "not built" (npm ci --ignore-scripts); a missing module inside dist/ is a defect.
      if (error.code !== "ERR_MODULE_NOT_FOUND" || fs.existsSync(path.join(__dirname, "../dist"))) throw error;
      process.stderr.write(name + " is not built yet: run npm run build in " + path.dirname(__dirname) + "\n");
      process.exitCode = 2;
    },
  );
};
