/**
 * Installs the packed tarball into an empty folder and uses it as a new user would:
 * imports every entry of `exports`, type-checks a strict consumer, runs both programs.
 */
import { execFileSync } from "node:child_process";
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";

const root = resolve(import.meta.dirname, "..");
const manifest = JSON.parse(readFileSync(join(root, "package.json"), "utf8"));
const folder = mkdtempSync(join(tmpdir(), "docstokg-pack-"));

try {
  const consumer = join(folder, "consumer");
  mkdirSync(consumer);
  const [packed] = JSON.parse(run(root, "npm", "pack", "--json", "--pack-destination", folder));
  const shipped: readonly string[] = packed.files.map((file: { path: string }) => file.path);
  const forbidden = shipped.filter(path => /\.test\.|^src\/|^test\//.test(path));
  if (forbidden.length > 0)
    throw new Error(`the tarball contains files that must not be shipped: ${forbidden.join(", ")}`);

  writeFileSync(join(consumer, "package.json"), JSON.stringify({ name: "consumer", private: true, type: "module" }));
  run(consumer, "npm", "install", "--prefer-offline", "--no-audit", "--no-fund", join(folder, packed.filename));

  const entries = Object.keys(manifest.exports)
    .filter(key => key !== "./package.json")
    .map(key => manifest.name + key.slice(1));
  const lines = entries.map((entry, index) => `import * as entry${index} from ${JSON.stringify(entry)};`);
  const used = entries.map((_, index) => `entry${index}`).join(", ");
  writeFileSync(
    join(consumer, "imports.mjs"),
    `${lines.join("\n")}\nfor (const entry of [${used}]) if (Object.keys(entry).length === 0) throw new Error("an entry exports nothing");\n`,
  );
  run(consumer, process.execPath, "imports.mjs");

  // Optional peers are not installed: the error must name the missing one.
  writeFileSync(
    join(consumer, "peers.mjs"),
    `import { otelSink, prometheusSink } from ${JSON.stringify(`${manifest.name}/telemetry`)};
for (const [sink, peer] of [[otelSink, "@opentelemetry/api"], [prometheusSink, "prom-client"]]) {
  const message = await sink().then(() => "", error => error.message);
  if (!message.endsWith("npm install " + peer)) throw new Error(\`without \${peer}: "\${message}"\`);
}
`,
  );
  run(consumer, process.execPath, "peers.mjs");

  writeFileSync(
    join(consumer, "types.ts"),
    `${lines.join("\n")}\nexport const entries: readonly object[] = [${used}];\n`,
  );
  const options = {
    strict: true,
    skipLibCheck: false,
    noEmit: true,
    module: "nodenext",
    target: "es2024",
    types: ["node"],
  };
  const typeRoots = [join(root, "node_modules/@types")];
  // With the types of browsers, `RequestInit` is another type.
  for (const browser of [[], ["dom", "dom.iterable"]]) {
    const lib = ["es2024", "esnext.disposable", ...browser];
    writeFileSync(
      join(consumer, "tsconfig.json"),
      JSON.stringify({
        compilerOptions: { ...options, lib, typeRoots, exactOptionalPropertyTypes: true },
        files: ["types.ts"],
      }),
    );
    run(consumer, join(root, "node_modules/.bin/tsc"), "-p", "tsconfig.json");
  }

  for (const bin of Object.keys(manifest.bin)) {
    const version = run(consumer, join(consumer, "node_modules/.bin", bin), "--version").trim();
    if (version !== manifest.version)
      throw new Error(`${bin} --version printed ${version}, expected ${manifest.version}`);
  }
  console.log(
    `the packed tarball (${shipped.length} files, ${Math.round(packed.size / 1024)} kB) installs, ` +
      `its ${entries.length} entries import and type-check, and ${Object.keys(manifest.bin).join(" and ")} run`,
  );
} finally {
  rmSync(folder, { recursive: true, force: true });
}

function run(cwd: string, command: string, ...args: readonly string[]): string {
  return execFileSync(command, args, { cwd, encoding: "utf8", stdio: ["ignore", "pipe", "inherit"] });
}
