import assert from "node:assert/strict";
import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join, resolve } from "node:path";
import { test } from "node:test";
import { outdatedPages } from "../scripts/reference.ts";
import { type PublicSurface, publicSurface } from "./public-surface.ts";
import { temporaryFolder } from "./temporary-folder.ts";

const root = resolve(import.meta.dirname, "..");
const { text, undocumented, unexported } = publicSurface(root);

test("the exports of the package equal the committed snapshot, which npm run surface writes", () => {
  assert.equal(text, readFileSync(resolve(import.meta.dirname, "public-surface.txt"), "utf8"));
});

test("every public export and member has a doc comment", () => {
  assert.deepEqual(undocumented, []);
});

test("every type of ours that a public declaration names is exported", () => {
  assert.deepEqual(unexported, []);
});

test("every member of a union is in the surface, with the types that it names and its fields without a doc comment", () => {
  const { text, undocumented, unexported } = surfaceOf([
    "/** Not exported. */",
    "export interface Inner {",
    "}",
    "/** An event. */",
    "export type Event =",
    "/** Begun. */",
    "{",
    '    readonly event_type: "begun";',
    "    /** The name. */",
    "    readonly host: string;",
    "}",
    "/** Ended. */",
    " | ({",
    '    readonly event_type: "ended";',
    "    readonly host: string;",
    "} & Inner)",
    " | Inner;",
  ]);
  assert.match(text, /"ended";\n {4}readonly host: string;\n\} & Inner\)\n \| Inner;/);
  assert.deepEqual(undocumented, ["docstokg: Event.host"]);
  assert.deepEqual(unexported, ["docstokg: Event names Inner"]);
});

test("members of members need a doc comment; the details that a constructor takes do not", () => {
  const { undocumented } = surfaceOf([
    "/** An error. */",
    "export declare class Event {",
    "    /** Where. */",
    "    readonly place: {",
    "        /** The host. */",
    "        readonly host: string;",
    "        readonly port: number;",
    "    };",
    "    constructor(details: {",
    "        readonly host: string;",
    "    });",
    "}",
  ]);
  assert.deepEqual(undocumented, ["docstokg: Event.place.port"]);
});

/** Of a package whose only entry exports `Event`. */
function surfaceOf(declarations: readonly string[]): PublicSurface {
  const folder = temporaryFolder("surface");
  mkdirSync(join(folder, "dist"));
  const exports = { ".": { types: "./dist/index.d.ts" } };
  writeFileSync(join(folder, "package.json"), JSON.stringify({ exports }));
  writeFileSync(join(folder, "dist", "index.d.ts"), 'export type { Event } from "./event.ts";\n');
  writeFileSync(join(folder, "dist", "event.d.ts"), `${declarations.join("\n")}\n`);
  return publicSurface(folder);
}

test("the reference pages equal those generated from the code, which npm run reference writes", async () => {
  assert.deepEqual(await outdatedPages(), []);
});
