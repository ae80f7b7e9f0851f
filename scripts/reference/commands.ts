import { type CommandDescription, describeCommands } from "../../src/cli/command-descriptions.ts";
import { docstokg } from "../../src/cli/docstokg.ts";
import { ontofetch } from "../../src/cli/ontofetch.ts";
import { EXIT_CODE_MEANINGS, type Program } from "../../src/cli/program.ts";
import { differingNames } from "./differing-names.ts";
import { EXIT_CODES } from "./exit-codes.ts";
import { code, page, sentence, table } from "./markdown.ts";

/** `docs/reference/commands.md`: every command with its arguments, flags and exit codes. */
export async function commandsPage(): Promise<string> {
  const programs = [docstokg, ontofetch];
  const described = await Promise.all(programs.map(describeCommands));
  checkExitCodes(
    programs.flatMap(({ name }, index) =>
      (described[index] ?? []).filter(({ runs }) => runs).map(({ path }) => [name, ...path].join(" ")),
    ),
  );
  return page(
    "Commands, flags and exit codes",
    "What `--help` prints, for both programs. [The command line](cli.md) describes what all commands have in common, the targets of orders and the JSON output.",
    table(
      ["exit code", "meaning"],
      EXIT_CODE_MEANINGS.map(([exitCode, meaning]) => [String(exitCode), meaning]),
    ),
    ...programs.flatMap((program, index) => programSections(program, described[index] ?? [])),
  );
}

function checkExitCodes(runnable: readonly string[]): void {
  const wrong = differingNames(runnable, Object.keys(EXIT_CODES));
  if (wrong.length > 0) throw new Error(`exit-codes.ts differs from the commands: ${wrong.join(", ")}`);
}

function programSections({ name, summary }: Program, commands: readonly CommandDescription[]): readonly string[] {
  const shared = sharedFlags(commands);
  const runnable = commands.filter(({ runs }) => runs);
  return [
    `## ${name}`,
    `${summary} \`--help\` and \`--version\` exist everywhere.`,
    table(
      ["command", "effect"],
      runnable.map(({ path, summary: effect }) => [
        `[\`${name} ${path.join(" ")}\`](#${[name, ...path].join("-")})`,
        effect,
      ]),
    ),
    ...runnable.map(command => commandSection(name, command, shared)),
    ...(shared.size === 0 ? [] : [`### Flags of the policy`, policyFlags(commands, shared)]),
  ];
}

function commandSection(program: string, command: CommandDescription, shared: ReadonlySet<string>): string {
  const name = [program, ...command.path].join(" ");
  const usage = [
    name,
    ...(command.flags.length > 0 ? ["[flags]"] : []),
    ...command.arguments.map(({ usage }) => usage),
  ];
  const rows = [
    ...command.arguments.map(({ usage: text, description }) => [code(text), description, ""]),
    ...command.flags
      .filter(({ long }) => !shared.has(long))
      .map(({ flags, description, defaultText }) => [
        code(flags),
        description,
        defaultText === undefined ? "" : code(defaultText),
      ]),
  ];
  const takesShared = command.flags.some(({ long }) => shared.has(long));
  return [
    `### ${name}`,
    sentence(command.summary),
    `\`\`\`console\n${usage.join(" ")}\n\`\`\``,
    ...(rows.length === 0 ? [] : [table(["argument or flag", "meaning", "default"], rows).trim()]),
    ...(takesShared ? ["It also takes the [flags of the policy](#flags-of-the-policy)."] : []),
    `Exit codes: ${EXIT_CODES[name]}`,
  ].join("\n\n");
}

/** The flags of `policy show` that many commands share. They are listed once. */
function sharedFlags(commands: readonly CommandDescription[]): ReadonlySet<string> {
  const show = commands.find(({ path }) => path.join(" ") === "policy show");
  return new Set(show?.flags.map(({ long }) => long).filter(long => long !== "--host" && long !== "--json"));
}

function policyFlags(commands: readonly CommandDescription[], shared: ReadonlySet<string>): string {
  const flags = commands.find(({ path }) => path.join(" ") === "policy show")?.flags ?? [];
  const rows = flags
    .filter(({ long }) => shared.has(long))
    .map(({ flags: text, description }) => [code(text), description]);
  const intro =
    "They override the files and the environment ([configuration](configuration.md)). `why` takes only `--rate`, `--breaker` and `--breaker-role`.";
  return `${intro}\n\n${table(["flag", "overrides"], rows)}`;
}
