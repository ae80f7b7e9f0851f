/**
 * Loaded with `--import` into a program that is tested: writes the stamps of its requests, as JSON, into the file that
 * WRITE_STAMPS_FILE names when the program exits.
 */
import { writeFileSync } from "node:fs";
import { recordWrites } from "./write-stamps.ts";

const writes = recordWrites();
process.on("exit", () => writeFileSync(process.env["WRITE_STAMPS_FILE"] ?? "", JSON.stringify(writes.allUs)));
