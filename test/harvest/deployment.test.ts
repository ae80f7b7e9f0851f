import assert from "node:assert/strict";
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { after, before, describe, type TestContext, test } from "node:test";
import { Command } from "commander";
import { parse, parseAllDocuments } from "yaml";
import { docstokg } from "../../src/cli/docstokg.ts";
import { runProgram } from "../../src/cli/program.ts";
import { temporaryFolder } from "../temporary-folder.ts";
import { PostgresServer, whyNoPostgres } from "./postgres-server.ts";

const examples = join(import.meta.dirname, "..", "..", "examples", "many-machines");
const COMPOSE = readFileSync(join(examples, "docker-compose.yml"), "utf8");
const KUBERNETES = readFileSync(join(examples, "kubernetes.yaml"), "utf8");
const TOKEN = "a-token-of-the-operator";

interface Service {
  readonly image?: string;
  readonly command?: readonly string[];
  readonly environment?: Readonly<Record<string, string>>;
  readonly secrets?: readonly string[];
  readonly volumes?: readonly string[];
  readonly ports?: readonly string[];
  readonly depends_on?: Readonly<Record<string, unknown>>;
}

interface Compose {
  readonly services: Readonly<Record<string, Service>>;
  readonly secrets: Readonly<Record<string, unknown>>;
  readonly volumes: Readonly<Record<string, unknown>>;
}

interface Container {
  readonly args: readonly string[];
  readonly envFrom: readonly { readonly configMapRef?: { readonly name: string } }[];
  readonly volumeMounts?: readonly { readonly name: string }[];
}

interface PodSpec {
  readonly containers: readonly Container[];
  readonly volumes?: readonly { readonly name: string }[];
}

interface Resource {
  readonly kind: string;
  readonly metadata: { readonly name: string };
  readonly data?: Readonly<Record<string, string>>;
  readonly spec?: {
    readonly template?: { readonly metadata: { readonly labels: unknown }; readonly spec: PodSpec };
    readonly jobTemplate?: { readonly spec: { readonly template: { readonly spec: PodSpec } } };
    readonly selector?: unknown;
  };
}

const compose = parse(COMPOSE, { merge: true }) as Compose;
const resources = parseAllDocuments(KUBERNETES).map(document => document.toJS() as Resource);
const pods = resources.flatMap(({ spec }) => [spec?.template?.spec, spec?.jobTemplate?.spec.template.spec]);
const ours = Object.entries(compose.services).filter(([, { image }]) => image === undefined);

/** The commands after `docstokg` or after the name of a service, in the comments at the top of a file. */
function commandsInComments(text: string, start: RegExp): readonly (readonly string[])[] {
  return text
    .split("\n")
    .filter(line => line.startsWith("#") && start.test(line))
    .map(line => line.slice((start.exec(line)?.index ?? 0) + (start.exec(line)?.[0].length ?? 0)).split(" "));
}

/** Throws if the program does not know the command, an argument or a flag. */
async function parseCommand([name, ...args]: readonly string[]): Promise<void> {
  const found = docstokg.commands.find(command => command.name === name);
  assert.ok(found, `docstokg has no command ${name}`);
  const command = new Command(name).exitOverride().configureOutput({ writeErr: () => undefined });
  (await found.load()).configure?.(command);
  command.parse(args, { from: "user" });
}

test("the services of docker-compose.yml use only what the file declares", () => {
  assert.deepEqual(Object.keys(compose.services), ["db", "redis", "worker", "dashboard", "works"]);
  for (const [name, { secrets = [], volumes = [], ports = [], depends_on = {} }] of Object.entries(compose.services)) {
    for (const secret of secrets) assert.ok(secret in compose.secrets, `${name}: ${secret}`);
    for (const service of Object.keys(depends_on)) assert.ok(service in compose.services, `${name}: ${service}`);
    for (const volume of volumes.filter(each => !each.startsWith(".")))
      assert.ok((volume.split(":")[0] ?? "") in compose.volumes, `${name}: ${volume}`);
    // A page without TLS is not for other machines.
    for (const port of ports) assert.match(port, /^127\.0\.0\.1:(\d+):\1$/);
  }
  for (const [name, { command = [], environment = {}, secrets = [] }] of ours) {
    const paths = [...command, ...Object.values(environment)].flatMap(text => text.match(/\/run\/secrets\/\w+/g) ?? []);
    for (const path of paths) assert.ok(secrets.includes(path.replace("/run/secrets/", "")), `${name}: ${path}`);
  }
});

test("docstokg knows every command and flag of the examples", async () => {
  const lines = [
    ...ours.map(([, { command = [] }]) => command),
    ...commandsInComments(COMPOSE, /run --rm worker /),
    ...commandsInComments(KUBERNETES, /-- docstokg /),
    ...pods.flatMap(pod => pod?.containers.map(({ args }) => args) ?? []),
  ];
  assert.equal(lines.length, 9);
  for (const line of lines) await parseCommand(line);
});

test("the resources of kubernetes.yaml use only what the file declares or its first lines explain", () => {
  const names = (kind: string) => resources.filter(each => each.kind === kind).map(({ metadata }) => metadata.name);
  assert.deepEqual(names("Deployment"), ["docstokg-worker", "docstokg-dashboard"]);
  assert.deepEqual(names("Service"), ["docstokg-dashboard"]);
  for (const pod of pods) {
    const volumes = pod?.volumes?.map(({ name }) => name) ?? [];
    for (const { envFrom, volumeMounts = [] } of pod?.containers ?? []) {
      for (const { configMapRef } of envFrom)
        if (configMapRef !== undefined) assert.ok(names("ConfigMap").includes(configMapRef.name));
      for (const { name } of volumeMounts) assert.ok(volumes.includes(name), name);
    }
  }
  for (const [, secret = ""] of KUBERNETES.matchAll(/(?:secretRef: \{ name|secretName): ([\w-]+)/g))
    assert.ok(KUBERNETES.includes(`kubectl create secret generic ${secret} `), secret);
});

describe("docker-compose.yml on a PostgreSQL server", { skip: whyNoPostgres() }, () => {
  let server: PostgresServer;
  before(async () => {
    server = await PostgresServer.start();
  });
  after(() => server?.stop());

  /** Runs the command of a service with its environment, where the database, secrets and ports are those of this test. */
  function startService(t: TestContext, folder: string, command: readonly string[], variables = {}) {
    const database = server.url({ schema: "docstokg" }).replace(/\?.*/, "");
    const here = (text: string) =>
      text
        .replace(/\$\{(\w+):[-?]([^}]*)\}/g, (_, name: string, otherwise: string) =>
          name === "DOCSTOKG_MAILTO" ? "you@example.org" : otherwise,
        )
        .replaceAll("postgres://harvest@db/harvest", database)
        .replaceAll("/run/secrets", folder)
        .replaceAll("/lists", folder)
        .replaceAll("/papers", join(folder, "papers"))
        .replace(/^(--port=)?808\d$/, "$10");
    const environment = Object.entries({ ...compose.services["worker"]?.environment, ...variables });
    const output = { stdout: "", stderr: "" };
    const interrupts = new Set<() => void>();
    const { promise: interruptible, resolve } = Promise.withResolvers<void>();
    const ended = runProgram(docstokg, {
      argv: command.map(here),
      env: Object.fromEntries(environment.map(([name, value]) => [name, here(String(value))])),
      stdout: {
        write: text => {
          output.stdout += text;
          if (text.startsWith("Dashboard: ")) resolve();
        },
      },
      stderr: { write: text => (output.stderr += text) },
      onInterrupt: listener => {
        interrupts.add(listener);
        if (command[0] === "worker") resolve();
        return () => interrupts.delete(listener);
      },
    });
    const stop = async () => {
      for (const interrupt of interrupts) interrupt();
      return ended;
    };
    t.after(stop);
    return { output, ended, stop, ready: Promise.race([interruptible, ended]) };
  }

  test("workers wait for the first list, and the pages answer to the token that is in no output", async t => {
    const folder = temporaryFolder("deployment");
    writeFileSync(join(folder, "dashboard_token"), `${TOKEN}\n`);
    writeFileSync(join(folder, "pgpass"), "", { mode: 0o600 });
    const serviceFor = (name: string) =>
      startService(t, folder, compose.services[name]?.command ?? [], compose.services[name]?.environment);
    const worker = serviceFor("worker");
    await worker.ready;
    for (const name of ["dashboard", "works"]) {
      const page = serviceFor(name);
      await page.ready;
      const [, port] = /^Dashboard: http:\/\/0\.0\.0\.0:(\d+)\/\?token=… \(/.exec(page.output.stdout) ?? [];
      assert.ok(port, `${name}: ${page.output.stdout}${page.output.stderr}`);
      const address = `http://127.0.0.1:${port}/`;
      assert.equal((await fetch(`${address}?token=${TOKEN}`)).status, 200);
      assert.equal((await fetch(address)).status, 403);
      assert.equal(await page.stop(), 130);
      assert.doesNotMatch(page.output.stdout + page.output.stderr, new RegExp(TOKEN));
    }
    assert.equal(await worker.stop(), 130, worker.output.stderr);
    const [enqueue = [], status = []] = commandsInComments(COMPOSE, /run --rm worker /);
    writeFileSync(join(folder, "works.csv"), "doi\n10.5555/one\n10.5555/two\n");
    const enqueued = startService(t, folder, enqueue);
    assert.equal(await enqueued.ended, 0, enqueued.output.stderr);
    const shown = startService(t, folder, status.slice(0, 1));
    assert.equal(await shown.ended, 0, shown.output.stderr);
    assert.match(shown.output.stdout, /^2 works: 0 done, 0 failed, 2 unfinished/);
    assert.match(shown.output.stdout, /^last run: \S+, waiting for docstokg worker \(run /m);
  });
});
