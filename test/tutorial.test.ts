import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync, mkdirSync, readFileSync, symlinkSync, writeFileSync } from "node:fs";
import { createServer } from "node:net";
import { dirname, join, resolve } from "node:path";
import { test } from "node:test";
import { temporaryFolder } from "./temporary-folder.ts";

/**
 * Follows docs/tutorial.md: writes each file that a block names in its first line, and runs the commands of each `sh`
 * block in one shell. The `text` block after it is the output, in which `…` stands for anything.
 */
const root = resolve(import.meta.dirname, "..");

test("every step of the tutorial works as it is written", { timeout: 600_000 }, async t => {
  const folder = await prepare();
  const [serverPort, pagePort] = [await freePort(), await freePort()];
  const text = readFileSync(join(root, "docs/tutorial.md"), "utf8")
    .replaceAll("8080", String(serverPort))
    .replaceAll("8090", String(pagePort))
    .replace("mkdir harvest && cd harvest\n", "");
  const shell = new Shell(folder, AbortSignal.timeout(570_000));
  t.after(() => shell.end());
  const steps = [...text.matchAll(/^```(\w+)\n(.*?)^```$(?:\s*^```text\n(.*?)^```$)?/gms)];
  assert.ok(steps.length > 10);
  let printed = "";
  for (const [, kind, content = "", output] of steps) {
    const [, file] = /^(?:\/\/|#) ([\w-]+\.\w+)$/m.exec(content.split("\n")[0] ?? "") ?? [];
    if (kind === "ts" || kind === "yaml")
      writeFileSync(join(folder, file ?? assert.fail(`no file name:\n${content}`)), content);
    // The folder of the test stands for the new one, and has a link to this project.
    if (kind !== "sh" || /^npm install/m.test(content)) continue;
    printed = await shell.run(content, output);
  }
  const [, requests] = /^(\d+) requests, 0 rejected$/m.exec(printed) ?? [];
  assert.ok(Number(requests) > 200, `${requests} requests for 200 pages: none failed in the outage of step 5`);
});

async function prepare(): Promise<string> {
  assert.ok(existsSync(join(root, "dist")), "the tutorial uses the built package, and dist is missing: npm run build");
  const folder = temporaryFolder("tutorial");
  mkdirSync(join(folder, "node_modules/.bin"), { recursive: true });
  symlinkSync(root, join(folder, "node_modules/docstokg"));
  symlinkSync(join(root, "bin/docstokg.cjs"), join(folder, "node_modules/.bin/docstokg"));
  return folder;
}

/** A busy machine delays requests on their way to the server by more than the 25 ms that limits allow for by default. */
const WIDE_GUARD = "127.0.0.1:metadata=guard_ms:1000";

/** One shell for all steps, because later steps use the jobs of earlier ones. */
class Shell {
  readonly #process;
  #output = "";
  #read = 0;
  #steps = 0;
  #onData: (() => void) | undefined;
  readonly #signal: AbortSignal;

  /** @param signal ends a step that does not print what it should */
  constructor(folder: string, signal: AbortSignal) {
    this.#signal = signal;
    const path = `${dirname(process.execPath)}:${process.env["PATH"]}`;
    // A process group of its own.
    this.#process = spawn("bash", [], {
      cwd: folder,
      env: { ...process.env, PATH: path, NODE_OPTIONS: "", DOCSTOKG_RLIMITS: WIDE_GUARD },
      detached: true,
    });
    for (const stream of [this.#process.stdout, this.#process.stderr])
      stream.setEncoding("utf8").on("data", chunk => {
        this.#output += chunk;
        this.#onData?.();
      });
  }

  /** Runs the commands, waits until they have ended and the expected output was printed, and returns what was printed. */
  async run(commands: string, expected: string | undefined): Promise<string> {
    this.#steps += 1;
    const mark = `-- end of step ${this.#steps}`;
    this.#process.stdin.write(`${commands}\necho "${mark} $?"\n`);
    const pattern = new RegExp(
      (expected ?? "")
        .trim()
        .split(/\s*…\s*/)
        .map(part => part.replace(/[.*+?^${}()|[\]\\]/g, "\\$&"))
        .join("[\\s\\S]*"),
    );
    await this.#until(
      () => this.#output.slice(this.#read),
      printed => printed.includes(mark) && (pattern.test(printed) || !printed.includes(`${mark} 0`)),
      commands,
    );
    const printed = this.#output.slice(this.#read);
    assert.match(printed, new RegExp(`${mark} 0`), printed);
    this.#read = this.#output.length;
    return printed;
  }

  #until(printed: () => string, isDone: (printed: string) => boolean, commands: string): Promise<void> {
    return new Promise((resolve, reject) => {
      const check = () => isDone(printed()) && finish(resolve);
      const fail = () => finish(() => reject(new Error(`${commands}printed:\n${printed()}`)));
      const finish = (settle: () => void) => {
        this.#onData = undefined;
        this.#signal.removeEventListener("abort", fail);
        settle();
      };
      this.#onData = check;
      this.#signal.addEventListener("abort", fail, { once: true });
      check();
    });
  }

  /** Ends the shell and everything that it has started: they are one process group. */
  async end(): Promise<void> {
    const ended = once(this.#process, "close");
    if (this.#process.pid !== undefined) process.kill(-this.#process.pid);
    await ended;
  }
}

async function freePort(): Promise<number> {
  const server = createServer().listen(0, "127.0.0.1");
  await new Promise(listening => server.once("listening", listening));
  const { port } = server.address() as { port: number };
  await new Promise(closed => server.close(closed));
  return port;
}
