#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# Completions and manual pages are generated from the commands' registered options. DYNAMICCL_BIN is the program.

# The script asks every program of the build for its options, including those that use LibTorch. It is therefore
# generated only once.
setup_file() {
  "$DYNAMICCL_BIN" completion bash > "$BATS_FILE_TMPDIR/completion.bash"
}

setup() {
  bats_require_minimum_version 1.5.0
  cd "$BATS_TEST_TMPDIR"
  export NO_COLOR=1
}

dynamiccl() { "$DYNAMICCL_BIN" "$@"; }

# Prints bash's completions for the words of a line. The last word is the one being typed.
offered() {
  source "$BATS_FILE_TMPDIR/completion.bash"
  COMP_WORDS=("$@")
  COMP_CWORD=$(($# - 1))
  COMPREPLY=()
  _dynamiccl
  printf '%s\n' "${COMPREPLY[@]}"
}

@test "bash: commands, actions, options, listed values and files" {
  [ "$(offered dynamiccl reco)" = record ]
  [ "$(offered dynamiccl trace imp)" = import ]
  [ "$(offered dynamiccl trace import --fr)" = --from ]
  [ "$(offered dynamiccl config che)" = check ]
  [ "$(offered dynamiccl run --mode ada)" = adaptive ]
  touch run.ctrace
  [ "$(offered dynamiccl replay ru)" = run.ctrace ]
  [ "$(offered dynamiccl run --policy ru)" = run.ctrace ]
}

@test "bash: every command of the help is offered" {
  offered dynamiccl "" > offered.txt
  dynamiccl --help | sed -n 's/^  \([a-z]*\)  *[A-Z].*/\1/p' > commands.txt
  [ -s commands.txt ]
  while read -r command; do grep -qx "$command" offered.txt; done < commands.txt
}

@test "bash: words behind -- are the program's" {
  [ -z "$(offered dynamiccl run -- --pol)" ]
}

@test "zsh takes its script" {
  command -v zsh > /dev/null || skip "no zsh"
  dynamiccl completion zsh > _dynamiccl
  zsh -n _dynamiccl
  zsh -fc 'fpath=($PWD $fpath); autoload -Uz compinit; compinit -u -D; (( $+_comps[dynamiccl] )) && autoload +X _dynamiccl'
}

@test "fish offers commands, actions, options and listed values" {
  command -v fish > /dev/null || skip "no fish"
  dynamiccl completion fish > dynamiccl.fish
  export HOME="$PWD"
  fish_offers() { fish --no-config -c "source dynamiccl.fish; complete -C '$1'" | cut -f1; }
  [ "$(fish_offers 'dynamiccl reco')" = record ]
  [ "$(fish_offers 'dynamiccl trace impo')" = import ]
  [ "$(fish_offers 'dynamiccl trace import --fro')" = --from ]
  [ "$(fish_offers 'dynamiccl run --mode ada')" = adaptive ]
}

@test "another shell is a usage error" {
  run dynamiccl completion tcsh
  [ "$status" -eq 2 ]
  [[ "$output" == *bash* ]]
}

@test "pages: one for the program and one for each command, without a warning of groff" {
  dynamiccl man -o pages
  [ -s pages/dynamiccl.1 ]
  dynamiccl --help | sed -n 's/^  \([a-z]*\)  *[A-Z].*/\1/p' > commands.txt
  while read -r command; do [ -s "pages/dynamiccl-$command.1" ]; done < commands.txt
  command -v groff > /dev/null || skip "no groff"
  for page in pages/*.1; do
    warnings="$(groff -man -Tascii -ww "$page" 2>&1 > /dev/null)"
    [ -z "$warnings" ] || { echo "$page: $warnings"; false; }
  done
}

@test "pages: every option in the help stands in the page, also those of the programs beside dynamiccl" {
  dynamiccl man -o pages
  dynamiccl --help | sed -n 's/^  \([a-z]*\)  *[A-Z].*/\1/p' > commands.txt
  while read -r command; do
    tr -d '\\' < "pages/dynamiccl-$command.1" > plain
    for option in $(dynamiccl "$command" --help | grep -o '^  \(-[a-z],\)\?--[a-z0-9-]*' | grep -o -- '--[a-z0-9-]*'); do
      grep -q -- "fB$option" plain || { echo "$command: $option"; false; }
    done
  done < commands.txt
}

@test "options of the agents' program are offered and in its page, where this build has it" {
  [ -x "$(dirname "$DYNAMICCL_BIN")/dynamiccl-agents" ] || skip "built without LibTorch"
  [ "$(offered dynamiccl train --hold-out-si)" = --hold-out-sizes ]
  dynamiccl man train | tr -d '\\' > plain
  grep -A 3 'fB--structure-iterations' plain | grep -q '^Default: 10000.$'
  grep -A 3 'fB--measurements' plain | grep -q '^Must be given.$'
}

@test "a page of no command: exit 2 and a suggestion" {
  run dynamiccl man recrod
  [ "$status" -eq 2 ]
  [[ "$output" == *record* ]]
}
