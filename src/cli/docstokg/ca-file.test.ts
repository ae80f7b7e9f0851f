import assert from "node:assert/strict";
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { test } from "node:test";
import { getCACertificates } from "node:tls";
import { runCli, temporaryFolder } from "../../../test/cli/kit.ts";
import { tlsFixture } from "../../../test/http/kit.ts";
import { trustedCertificates } from "./ca-file.ts";

test("--ca adds certificates to those that Node trusts", async () => {
  const { folder } = await temporaryFolder();
  const file = join(folder, "ca.pem");
  const { cert } = tlsFixture();
  await writeFile(file, `# our proxy\n${cert}\n${cert}`);
  const trusted = trustedCertificates(file);
  assert.ok(trusted.includes(cert.trim()));
  assert.ok(getCACertificates("default").length > 50);
  for (const certificate of getCACertificates("default")) assert.ok(trusted.includes(certificate.trim()));
});

test("a file without a valid certificate is an error of --ca before the run starts", async () => {
  const { folder } = await temporaryFolder();
  const file = join(folder, "ca.pem");
  const run = (ca: string) => runCli(["run", "10.1234/a", "-q", "--out", join(folder, "out"), "--ca", ca]);
  await writeFile(file, "garbage");
  assert.deepEqual(await run(file), {
    exitCode: 2,
    stdout: "",
    stderr: `docstokg: --ca: ${file} contains no certificate in PEM form\n`,
  });
  await writeFile(file, "-----BEGIN CERTIFICATE-----\nabcd\n-----END CERTIFICATE-----\n");
  const { exitCode, stderr } = await run(file);
  assert.deepEqual([exitCode, stderr], [2, `docstokg: --ca: certificate 1 of ${file} is invalid\n`]);
  assert.match((await run(join(folder, "none"))).stderr, /--ca: file not found: /);
});
