/** Completion scripts of a program for shells, made from the definitions of its commands. */
import type { CommandDescription } from "./command-descriptions.ts";

export const SHELLS = ["bash", "zsh", "fish"] as const;
export type Shell = (typeof SHELLS)[number];

/** A word that may follow: a command or a flag. */
interface CompletionWord {
  readonly word: string;
  readonly about: string;
}

/** What may follow each command: `""` is the program itself. */
interface CompletionTree {
  readonly program: string;
  /** Subcommands by the words before them: `"breaker"` has `open`. */
  readonly commands: ReadonlyMap<string, readonly CompletionWord[]>;
  /** Flags by the words before them. */
  readonly flags: ReadonlyMap<string, readonly CompletionWord[]>;
}

const GLOBAL_FLAGS: readonly CompletionWord[] = [{ word: "--help", about: "print help" }];
const ROOT_FLAGS: readonly CompletionWord[] = [...GLOBAL_FLAGS, { word: "--version", about: "print the version" }];

export function completionScript(shell: Shell, program: string, described: readonly CommandDescription[]): string {
  const tree = treeOf(program, described);
  return { bash, zsh, fish }[shell](tree);
}

function treeOf(program: string, described: readonly CommandDescription[]): CompletionTree {
  const commands = new Map<string, CompletionWord[]>([["", [{ word: "help", about: "print help for one command" }]]]);
  const flags = new Map<string, readonly CompletionWord[]>([["", ROOT_FLAGS]]);
  for (const { path, summary, flags: own } of described) {
    const parent = path.slice(0, -1).join(" ");
    commands.set(parent, [...(commands.get(parent) ?? []), { word: path.at(-1) ?? "", about: summary }]);
    const candidates = own.map(({ long, description }) => ({ word: long, about: description }));
    flags.set(path.join(" "), [...candidates, ...GLOBAL_FLAGS]);
  }
  commands.set(
    "help",
    (commands.get("") ?? []).filter(({ word }) => word !== "help"),
  );
  return { program, commands, flags };
}

/** Each command with the words before it, as a shell pattern. The scripts compare the typed words with them. */
function commandPatterns({ commands }: CompletionTree): readonly string[] {
  return [...commands].flatMap(([parent, words]) => words.map(({ word }) => `"${parent} ${word}"`));
}

function bash(tree: CompletionTree): string {
  const name = `_${tree.program}`;
  const cases = (lists: ReadonlyMap<string, readonly CompletionWord[]>) =>
    [...lists]
      .map(([path, words]) => `      "${path}") candidates="${words.map(({ word }) => word).join(" ")}" ;;`)
      .join("\n");
  return `# Completion of ${tree.program} for bash: source this file, or write it to a folder of bash-completion.
${name}() {
  local current="\${COMP_WORDS[COMP_CWORD]}" path="" candidates="" index
  for ((index = 1; index < COMP_CWORD; index++)); do
    case "$path \${COMP_WORDS[index]}" in
      ${commandPatterns(tree).join(" | ")}) path="\${path:+$path }\${COMP_WORDS[index]}" ;;
    esac
  done
  if [[ "$current" == -* ]]; then
    case "$path" in
${cases(tree.flags)}
    esac
  else
    case "$path" in
${cases(tree.commands)}
    esac
  fi
  # Without candidates, -o default completes file names.
  mapfile -t COMPREPLY < <(compgen -W "$candidates" -- "$current")
}
complete -o default -F ${name} ${tree.program}
`;
}

function zsh(tree: CompletionTree): string {
  const name = `_${tree.program}`;
  const quoted = (text: string) => `'${text.replaceAll("'", "'\\''")}'`;
  const cases = (lists: ReadonlyMap<string, readonly CompletionWord[]>) =>
    [...lists]
      .map(([path, words]) => {
        const items = words.map(({ word, about }) => quoted(`${word}:${about}`)).join(" ");
        return `      "${path}") candidates=(${items}) ;;`;
      })
      .join("\n");
  return `#compdef ${tree.program}
# Completion of ${tree.program} for zsh: write it to a folder of $fpath as ${name}, or source it after compinit.
${name}() {
  local -a candidates
  local path_words="" word
  for word in "\${(@)words[2,CURRENT-1]}"; do
    case "$path_words $word" in
      (${commandPatterns(tree).join("|")}) path_words="\${path_words:+$path_words }$word" ;;
    esac
  done
  if [[ "$PREFIX" == -* ]]; then
    case "$path_words" in
${cases(tree.flags)}
    esac
    _describe -o 'flag' candidates
  else
    case "$path_words" in
${cases(tree.commands)}
    esac
    if (( \${#candidates} )); then _describe 'command' candidates; else _files; fi
  fi
}
if [[ "\${funcstack[1]}" == "${name}" ]]; then ${name} "$@"; else compdef ${name} ${tree.program}; fi
`;
}

function fish(tree: CompletionTree): string {
  const { program } = tree;
  const quoted = (text: string) => `'${text.replaceAll("\\", "\\\\").replaceAll("'", "\\'")}'`;
  const at = (path: string) => `-n ${quoted(`__${program}_at "${path}"`)}`;
  const lines = [
    ...[...tree.commands].flatMap(([path, words]) =>
      words.map(({ word, about }) => `complete -c ${program} -f ${at(path)} -a ${word} -d ${quoted(about)}`),
    ),
    ...[...tree.flags].flatMap(([path, words]) =>
      words.map(({ word, about }) => `complete -c ${program} ${at(path)} -l ${word.slice(2)} -d ${quoted(about)}`),
    ),
  ];
  return `# Completion of ${program} for fish: write it to ~/.config/fish/completions/${program}.fish
function __${program}_at
    set -l path_words ""
    for word in (commandline -opc)[2..-1]
        switch "$path_words $word"
            case ${commandPatterns(tree).join(" ")}
                set path_words (string trim "$path_words $word")
        end
    end
    test "$path_words" = "$argv[1]"
end
${lines.join("\n")}
`;
}
