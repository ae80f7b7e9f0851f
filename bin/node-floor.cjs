"use strict";

// Plain old JavaScript on purpose: a Node below the floor must get as far as the sentence, not trip over the syntax.

var FLOOR = [22, 19];

module.exports = function run(name, load) {
  var found = process.versions.node.split(".").map(Number);
  if (found[0] < FLOOR[0] || (found[0] === FLOOR[0] && found[1] < FLOOR[1])) {
    process.stderr.write(
      name + " needs Node " + FLOOR.join(".") + " or newer; this is Node " + process.versions.node + ".\n",
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
      // A clone whose scripts were not run (npm ci --ignore-scripts); what is missing inside of dist/ is a defect, and loud.
      if (error.code !== "ERR_MODULE_NOT_FOUND" || fs.existsSync(path.join(__dirname, "../dist"))) throw error;
      process.stderr.write(name + " is not built yet: run npm run build in " + path.dirname(__dirname) + "\n");
      process.exitCode = 2;
    },
  );
};
