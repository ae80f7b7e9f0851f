# Prints what zsh offers for a line, as <MATCH word> among other output: capture-zsh.zsh <completion script> <line>
# A shell in a pseudo-terminal completes the line; its compadd prints each match.
zmodload zsh/zpty
zpty shell zsh -f -i
zpty -w shell "PROMPT= ; autoload -Uz compinit; compinit -u -D; source ${(q)1}; echo LOA''DED"
zpty -r shell output '*LOADED*'
zpty -w shell 'bindkey "^I" complete-word
finish() { print "<EN""D>"; exit }
comppostfuncs=(finish)
compadd() {
  if [[ ${@[1,(i)(-|--)]} == *-(O|A|D)\ * ]]; then builtin compadd "$@"; return; fi
  local -a matches
  builtin compadd -A matches "$@"
  for match in "${matches[@]}"; do print -r -- "<MAT""CH $match>"; done
  builtin compadd "$@"
}
echo REA""DY'
zpty -r shell output '*READY*'
zpty -w -n shell "$2"$'\t'
zpty -r shell output '*<END>*'
print -r -- "$output"
