import assert from "node:assert/strict";
import { existsSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { workOf } from "../../src/harvest/identifiers/identifiers.ts";
import type { RecordFile, WorkRecord } from "../../src/harvest/manifest/manifest-reports.ts";
import type { SimulatedWork } from "../../src/testing/internet/catalogue.ts";
import { latexSource, supplementArchive, supplementTable } from "../../src/testing/internet/other-files.ts";
import { jats } from "../../src/testing/internet/services/pmc.ts";
import { runCli } from "../cli/kit.ts";
import { temporaryFolder } from "../temporary-folder.ts";
import { internetFor } from "../testing/internet-kit.ts";
import { eventually, sha256 } from "./kit.ts";
import { startDocstokg } from "./processes.ts";

/** The files that a work should have: role, media type and hash. */
function expectedFiles(work: SimulatedWork): readonly string[] {
  const file = (role: string, mediaType: string, hash: string) => `${role} ${mediaType} ${hash}`;
  const pdf = file("article", "application/pdf", work.file.sha256);
  if (work.scenario === "arxiv") return [pdf, file("source", "application/gzip", sha256(latexSource(work)))];
  if (work.scenario === "zenodo") return [pdf, file("supplement", "text/csv", sha256(supplementTable(work)))];
  const xml = file("article", "application/xml", sha256(jats(work)));
  return [pdf, xml, file("supplement", "application/zip", sha256(supplementArchive(work)))];
}

test("run --formats all survives a kill, and verify, retry, export and report know each file by its role", async t => {
  const internet = await internetFor(t, { seed: 5, works: 32 });
  const find = (scenario: string, prefix = "10.") =>
    internet.works.find(({ scenario: name, ids }) => name === scenario && ids.doi?.startsWith(prefix));
  const works = [find("arxiv", "10.48550"), find("pmc"), find("zenodo")].filter(work => work !== undefined);
  assert.equal(works.length, 3);
  const folder = temporaryFolder("harvest");
  const out = join(folder, "papers");
  const flags = ["--formats", "all", "--resolvers", "arxiv,pmc,zenodo", "--quiet", "--json"];
  const start = (args: readonly string[], input: string) =>
    startDocstokg(t, internet, folder, [...args, ...flags], input, "shipped");
  const list = works.map(keyOf).join("\n");

  // arXiv permits a request in three seconds: its source is not downloaded when its PDF is there.
  const killed = start(["run", "--input", "-"], list);
  await Promise.race([eventually(() => pdfsOfArxiv(out) > 0), killed.ended]);
  killed.child.kill("SIGKILL");
  const { signal, code, stderr } = await killed.ended;
  // The run may end by itself before it is killed, if this process is starved for seconds.
  assert.ok(signal === "SIGKILL" || code === 0, `${signal} ${code} ${stderr}`);
  if (signal === null) t.diagnostic("the run ended before it was killed");
  else assert.ok((await exported(out)).some(({ state }) => state === "pending"));

  const resumed = await start(["run", "--input", "-"], list).ended;
  assert.equal(resumed.code, 0, resumed.stderr + resumed.stdout);
  const records = await exported(out);
  for (const work of works) {
    const { files, state } = records.find(({ key }) => key === keyOf(work)) ?? { files: [], state: "" };
    assert.deepEqual([state, described(files)], ["done", expectedFiles(work)]);
    for (const file of files) assert.equal(sha256(readFileSync(join(out, file.path))), file.sha256);
  }
  // What was stored before the kill was not requested again.
  const lines = (await runCli(["status", "--out", out, "--export", "-"])).stdout.trimEnd().split("\n");
  for (const { attempts } of lines.map(line => JSON.parse(line) as { attempts: { url: string; reason: string }[] })) {
    const stored = attempts.filter(({ reason }) => reason === "ok").map(({ url }) => url);
    assert.deepEqual(stored, [...new Set(stored)]);
  }

  const report = JSON.parse((await runCli(["report", out, "--json"])).stdout) as {
    works: { fileKinds: { role: string; mediaType: string; files: number }[] };
  };
  assert.deepEqual(
    report.works.fileKinds.map(({ role, mediaType, files }) => `${files} ${role} ${mediaType}`).toSorted(),
    [
      "1 article application/xml",
      "1 source application/gzip",
      "1 supplement application/zip",
      "1 supplement text/csv",
      "3 article application/pdf",
    ],
  );

  // One file of PMC is damaged and one of Zenodo is missing: verify names both, and retry downloads them again.
  const pathOf = (role: string, mediaType: string) =>
    records.flatMap(({ files }) => files).find(file => file.role === role && file.mediaType === mediaType)?.path ?? "";
  const [zip, csv] = [pathOf("supplement", "application/zip"), pathOf("supplement", "text/csv")];
  writeFileSync(join(out, zip), "damaged");
  rmSync(join(out, csv));
  const verified = await runCli(["verify", "--out", out, "--repair", "--json"]);
  const { problems } = JSON.parse(verified.stdout) as { problems: { path: string; role: string; problem: string }[] };
  assert.deepEqual(
    problems.map(({ path, role, problem }) => `${path} ${role} ${problem}`).toSorted(),
    [`${zip} supplement changed`, `${csv} supplement missing`].toSorted(),
  );
  const retried = await start(["retry"], "").ended;
  assert.equal(retried.code, 0, retried.stderr + retried.stdout);
  assert.equal((await runCli(["verify", "--out", out])).stdout, "7 files, 7 intact\n");
  assert.deepEqual(
    (await exported(out)).map(({ key, files }) => [key, described(files)]),
    works.map(work => [keyOf(work), expectedFiles(work)]),
  );
});

/** A DOI of arXiv is an arXiv id. */
function keyOf({ ids: { doi, arxiv }, scenario }: SimulatedWork): string {
  return workOf(scenario === "arxiv" ? { arxiv } : { doi }).key;
}

function pdfsOfArxiv(out: string): number {
  return existsSync(out) ? readdirSync(out).filter(name => /^arxiv_.*\.pdf$/.test(name)).length : 0;
}

async function exported(out: string): Promise<readonly WorkRecord[]> {
  const { stdout } = await runCli(["export", "--out", out, "--format", "jsonl"]);
  return stdout
    .trimEnd()
    .split("\n")
    .map(line => JSON.parse(line) as WorkRecord);
}

function described(files: readonly RecordFile[]): readonly string[] {
  return files.map(({ role, mediaType, sha256: hash }) => `${role} ${mediaType} ${hash}`);
}
