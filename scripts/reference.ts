/**
 * Writes the generated pages of docs/reference and the man pages: `npm run reference`. A test fails if a key, flag, event
 * or error has changed and the pages have not.
 */
import { readFileSync, writeFileSync } from "node:fs";
import { docstokg } from "../src/cli/docstokg.ts";
import { ontofetch } from "../src/cli/ontofetch.ts";
import { commandsPage } from "./reference/commands.ts";
import { configurationPage } from "./reference/configuration.ts";
import { errorsPage } from "./reference/errors.ts";
import { eventsPage, metricsPage } from "./reference/events.ts";
import { filesPage } from "./reference/files.ts";
import { manPage } from "./reference/man-page.ts";
import { servicesPage } from "./reference/services.ts";

interface ReferencePage {
  readonly file: URL;
  readonly text: string;
}

/** Every generated page, made from the code. */
export async function referencePages(): Promise<readonly ReferencePage[]> {
  const pages = {
    commands: await commandsPage(),
    configuration: await configurationPage(),
    errors: errorsPage(),
    events: eventsPage(),
    files: filesPage(),
    metrics: metricsPage(),
    services: await servicesPage(),
  };
  const manPages = await Promise.all(
    [docstokg, ontofetch].map(async program => ({
      file: new URL(`../man/${program.name}.1`, import.meta.url),
      text: await manPage(program),
    })),
  );
  const markdown = Object.entries(pages).map(([name, text]) => ({
    file: new URL(`../docs/reference/${name}.md`, import.meta.url),
    text,
  }));
  return [...markdown, ...manPages];
}

/** The generated pages whose files differ from the code. */
export async function outdatedPages(): Promise<readonly string[]> {
  const pages = await referencePages();
  return pages.filter(({ file, text }) => readFileSync(file, "utf8") !== text).map(({ file }) => file.pathname);
}

if (process.argv[1] === import.meta.filename) {
  for (const { file, text } of await referencePages()) writeFileSync(file, text);
}
