import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import type { TestContext } from "node:test";
import type { NetworkOptions } from "../../src/http/hub-options.ts";
import { Ontofetch, type OntofetchOptions } from "../../src/ontology/ontofetch.ts";
import { loadOntofetchSettings } from "../../src/ontology/ontofetch-settings.ts";
import type { PlanItem } from "../../src/ontology/planner.ts";
import type { PullOptions, PullResult } from "../../src/ontology/pull-result.ts";
import { type Internet, type InternetOptions, startInternet } from "../../src/testing/internet/start-internet.ts";
import { serve } from "../http/kit.ts";
import { temporaryFolder } from "../temporary-folder.ts";

export async function internetFor(t: TestContext, options: InternetOptions = {}): Promise<Internet> {
  const internet = await startInternet({ works: 0, bigOntologyBytes: 2_000_000, ...options });
  t.after(() => internet.close());
  return internet;
}

/** A folder with a `sources.yaml`, connected to the simulated internet. Each `plan` or `pull` opens a new Ontofetch. */
export interface Project {
  readonly folder: string;
  write(sources: string): Promise<void>;
  plan(): Promise<readonly PlanItem[]>;
  pull(
    options?: PullOptions & Partial<OntofetchOptions> & { readonly ids?: readonly string[] },
  ): Promise<readonly PullResult[]>;
}

export async function projectFor(internet: { readonly network: NetworkOptions }, sources: string): Promise<Project> {
  const folder = temporaryFolder("ontofetch");
  const env = { BIOPORTAL_API_KEY: "0123456789-secret" };
  const run = async <Result>(
    options: Partial<OntofetchOptions>,
    work: (ontofetch: Ontofetch) => Promise<Result>,
  ): Promise<Result> => {
    const settings = await loadOntofetchSettings({}, {}, folder);
    const ontofetch = await Ontofetch.open(settings, { env, network: internet.network, ...options });
    try {
      return await work(ontofetch);
    } finally {
      await ontofetch.close("test");
    }
  };
  const project: Project = {
    folder,
    write: text => writeFile(join(folder, "sources.yaml"), text),
    plan: () => run({}, ontofetch => ontofetch.plan(ontofetch.settings.sources)),
    pull: ({ ids, frozen, onResult, ...options } = {}) =>
      run(options, ontofetch => {
        const chosen = ontofetch.settings.sources.filter(({ id }) => ids?.includes(id) ?? true);
        return ontofetch.pull(chosen, { frozen, onResult, all: ids === undefined });
      }),
  };
  await project.write(sources);
  return project;
}

/** A project with one source, `x`, which a test server serves. */
export async function projectAt(t: TestContext, handler: Parameters<typeof serve>[1]) {
  const server = await serve(t, handler);
  const url = `${server.origin}/x.obo`;
  const sources = `allow_private: true\nsources:\n  x: { resolver: direct, extras: { url: "${url}" } }\n`;
  return { server, project: await projectFor({ network: {} }, sources) };
}
