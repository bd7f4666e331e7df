#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# The command line of `dynamiccl` as a user types it. DYNAMICCL_BIN is the program, DYNAMICCL_SOURCE the source tree.

setup() {
  bats_require_minimum_version 1.5.0
  cd "$BATS_TEST_TMPDIR"
  export NO_COLOR=1
}

dynamiccl() { "$DYNAMICCL_BIN" "$@"; }

@test "help lists every command of the table, on stdout" {
  run --separate-stderr dynamiccl --help
  [ "$status" -eq 0 ]
  [ -z "$stderr" ]
  for command in $(grep -o '^DYNAMICCL_[A-Z]*([a-z]*' "$DYNAMICCL_SOURCE/tools/command_table.def" | cut -d'(' -f2); do
    [[ "$output" == *"  $command "* ]]
  done
}

@test "every command's help starts with its sentence and three examples" {
  for command in $(grep -o '^DYNAMICCL_[A-Z]*([a-z]*' "$DYNAMICCL_SOURCE/tools/command_table.def" | cut -d'(' -f2); do
    run --separate-stderr dynamiccl "$command" --help
    [ "$status" -eq 0 ]
    [ "${lines[1]}" = "Examples:" ]
    [[ "${lines[4]}" == "  "* ]]
  done
}

@test "no command is a usage error with the help on stderr" {
  run --separate-stderr dynamiccl
  [ "$status" -eq 2 ]
  [ -z "$output" ]
}

@test "mistyped command: exit 2 and a suggestion" {
  run dynamiccl docter
  [ "$status" -eq 2 ]
  [[ "$output" == *"did you mean \`dynamiccl doctor\`"* ]]
}

@test "a command that is like no other gets no suggestion, which would mislead" {
  run dynamiccl headroom
  [ "$status" -eq 2 ]
  [[ "$output" == *"no command 'headroom'"* && "$output" != *"did you mean"* ]]
}

@test "a command without its files shows an example, and one without its action the actions" {
  run dynamiccl why
  [ "$status" -eq 2 ]
  [[ "$output" == *"hint: such as: dynamiccl why profile.pt.trace.json.gz; see \`dynamiccl why --help\`" ]]
  run dynamiccl canary 2.28.9
  [[ "$status" -eq 2 && "$output" == *"hint: such as: dynamiccl canary "* ]]
  run dynamiccl trace
  [[ "$status" -eq 2 && "$output" == *"one of these must follow: import, export, show,"* ]]
  run dynamiccl trace imprt x
  [[ "$status" -eq 2 && "$output" == *"no action 'imprt'; there are: import, export, show,"* ]]
  run dynamiccl trace --fromat x
  [[ "$status" -eq 2 && "$output" == *"one of these must follow: import, export, show,"* ]]
  for words in "zero" "zero foreign.txt" "zero -n 4" "zero --quiet foreign.txt" "zero -n 2 -- foreign.txt" "zero --stage 2 train"; do
    # shellcheck disable=SC2086
    run dynamiccl $words
    [[ "$status" -eq 2 && "$output" == *"there are: train, estimate, checkpoint"* && "$output" != *"rank 0"* ]]
  done
  run dynamiccl zero -n 2 checkpoint list
  [[ "$status" -eq 2 && "$output" == *"'checkpoint' must be the first word"* ]]
}

@test "tune and pilot without a program begin nothing and leave no folder" {
  for command in tune pilot; do
    run dynamiccl $command -o found
    [[ "$status" -eq 2 && "$output" == "error: no program given"* && ! -e found ]]
  done
}

@test "missing, empty and foreign files are called so" {
  : >empty.ctrace
  echo "Dear diary" >notes
  for command in why simulate advise replay hang; do
    run dynamiccl $command empty.ctrace
    [[ "$status" -eq 2 && "$output" == *"empty.ctrace: "*"the file is empty"* ]]
  done
  run dynamiccl why absent.json
  [[ "$status" -eq 2 && "$output" == *"absent.json"*"hint: check the path" ]]
  run dynamiccl report absent -o r.html
  [[ "$status" -eq 2 && "$output" == *"absent: No such file"*"hint: check the path" ]]
  run dynamiccl inspect notes
  [[ "$status" -eq 2 && "$output" == *"notes: byte 0: not a policy file"*"hint: name a .dcpolicy"* ]]
}

@test "mistyped option: exit 2 and a suggestion" {
  run dynamiccl run --polcy x -- true
  [ "$status" -eq 2 ]
  [[ "$output" == *"--policy"* ]]
}

@test "missing program, absent policy, bad mode and zero ranks are usage errors" {
  run dynamiccl run -n 2
  [ "$status" -eq 2 ]
  [[ "$output" == *"hint:"* ]]
  run dynamiccl run --policy absent.dcpolicy -- true
  [ "$status" -eq 2 ]
  [[ "$output" == *"absent.dcpolicy"* ]]
  run dynamiccl run --mode fast -- true
  [ "$status" -eq 2 ]
  run dynamiccl run -n 0 -- true
  [ "$status" -eq 2 ]
}

@test "a policy or rules that cannot be used stop the command before it starts anything" {
  cd "$BATS_TEST_TMPDIR"
  echo "no policy" > p.dcpolicy
  echo "allreduce,1" > rules.csv
  for command in "run" "record -o t.ctrace" "ab default ring/ll" "tune" "pilot"; do
    run dynamiccl $command -n 2 --policy p.dcpolicy -- touch started
    [[ "$status" -eq 2 && "$output" == *"p.dcpolicy: byte 0: not a policy file"*"hint: "* ]]
  done
  run dynamiccl run -n 2 --rules rules.csv -- touch started
  [[ "$status" -eq 2 && "$output" == *"rules.csv:1: column 2: 2 columns, a rule has"* ]]
  [ ! -e started ]
  # A file that an environment variable names does not stop the job, because a user may have set the variable for all
  # jobs.
  DYNAMICCL_POLICY="$PWD/p.dcpolicy" dynamiccl run -n 2 -- touch started
  [ -e started ]
}

@test "a program without -- is an error that says where it belongs" {
  run dynamiccl tune python train.py --lr 3
  [ "$status" -eq 2 ]
  [[ "$output" == *"not expected: python train.py --lr 3"*"hint: put the program after \`--\`: dynamiccl tune [OPTIONS] -- python train.py --lr 3" ]]
}

@test "wrong usage of an action names the action's help" {
  run dynamiccl trace import file.json
  [ "$status" -eq 2 ]
  [[ "$output" == *"dynamiccl trace import: --output is required"*"see \`dynamiccl trace import --help\`"* ]]
}

@test "an unknown topology is refused before the job starts" {
  for command in run "record -o t.ctrace" "ab default ring/simple/1" "pilot -o p" "tune -o t"; do
    run dynamiccl $command -n 2 --topology two-node-slow-rail -- touch started
    [ "$status" -eq 2 ]
    [[ "$output" == *"topology 'two-node-slow-rail' is neither a preset nor a readable file"*"hint: presets: "* ]]
    [ ! -e started ]
  done
}

@test "a recorded program that did not call NCCL is told what that needs" {
  run dynamiccl record -o t.ctrace -n 2 -- true
  [ "$status" -eq 3 ]
  [[ "$output" == *"no process called NCCL"*"hint: "*"dynamiccl doctor"*"backend dynamiccl"* ]]
}

@test "run -q says nothing of a job that ends well, and how one ended that did not" {
  run dynamiccl run -q -n 2 -- true
  [ "$status" -eq 0 ]
  [ "$output" = "" ]
  run dynamiccl run -q -n 2 -- sh -c 'kill -9 $$'
  [ "$status" -eq 4 ]
  [[ "$output" == *"was killed by signal 9 (SIGKILL)"* ]]
}

@test "unknown home is a usage error that names it" {
  run dynamiccl path --home "$BATS_TEST_TMPDIR"
  [ "$status" -eq 2 ]
  [[ "$output" == *"$BATS_TEST_TMPDIR"* ]]
}

@test "doctor --json is JSON with verdicts, and FAIL gives exit 1" {
  mkdir -p home/lib home/bin && touch home/lib/libdynamiccl.so && chmod 666 home/lib/libdynamiccl.so
  run --separate-stderr dynamiccl doctor --home home --json
  [ "$status" -eq 1 ]
  echo "$output" | python3 -c '
import json, sys
found = json.load(sys.stdin)
assert found["schema"] == 1 and found["ok"] is False
verdicts = {f["subject"]: f["verdict"] for f in found["findings"]}
assert verdicts["Object"] == "FAIL" and verdicts["hostccl"] == "FAIL" and verdicts["Agents"] == "WARN", verdicts
assert all(f["advice"] for f in found["findings"] if f["verdict"] != "OK")'
}

@test "doctor names pins and mistyped settings" {
  NCCL_ALGO=Ring DYNAMICCL_POLICI=x run dynamiccl doctor
  [[ "$output" == *"NCCL_ALGO"* ]]
  [[ "$output" == *"did you mean DYNAMICCL_POLICY"* ]]
}

@test "config check says what is wrong with files, and what they hold" {
  printf 'allreduce,0,1000000,ring,ll,-1,-1,-1\nallreduce,10,20,tree,ll,-1,-1,-1\n' > rules.csv
  run dynamiccl config check rules.csv
  [ "$status" -eq 0 ]
  [[ "$output" == WARN*"1 of 2 rules can never be used"*"line 2: line 1 takes all its calls first"* ]]
  printf 'allreduce,0,1000000,rink,ll,-1,-1,-1\n' > wrong.csv
  echo text > p.dcpolicy
  echo text > notes.txt
  for file in wrong.csv p.dcpolicy notes.txt absent.ctrace absent.dcsite; do
    run dynamiccl config check "$file"
    [ "$status" -eq 1 ]
    [[ "$output" == FAIL* ]]
  done
  printf '[[rule]]\n' > wrong.toml
  run dynamiccl config check wrong.toml
  [[ "$output" == FAIL*"neither rules"*"nor a topology"* ]]
}

@test "config check of the environment: names, values, files" {
  DYNAMICCL_POLICI=x DYNAMICCL_TRACE_RECORDS=many DYNAMICCL_MODE=fast DYNAMICCL_RULES=absent.csv run dynamiccl config check
  [ "$status" -eq 1 ]
  [[ "$output" == *"DYNAMICCL_POLICI"*"did you mean DYNAMICCL_POLICY"* ]]
  [[ "$output" == *"'many' is not a whole number"* ]]
  [[ "$output" == *"'fast' is no mode"* ]]
  [[ "$output" == *"absent.csv"* ]]
  DYNAMICCL_TIMES=al run dynamiccl config check
  [ "$status" -eq 1 ]
  [[ "$output" == *"DYNAMICCL_TIMES='al' is none of 0, 1 and all"* ]]
  DYNAMICCL_TIMES=all run dynamiccl config check
  [ "$status" -eq 0 ]
  DYNAMICCL_TRACE=traces/%r.ctrace DYNAMICCL_METRICS=%h/m/%r.prom run dynamiccl config check
  [ "$status" -eq 0 ]
  DYNAMICCL_TRACE=absent/traces/%r.ctrace run dynamiccl config check
  [ "$status" -eq 1 ]
  [[ "$output" == *"FAIL  DYNAMICCL_TRACE"*"no folder absent/traces"*"mkdir -p absent/traces"* ]]
  run dynamiccl config check
  [ "$status" -eq 0 ]
}

@test "zero estimate works without the trainer, zero train says what is missing" {
  mkdir -p alone/bin
  cp "$DYNAMICCL_BIN" alone/bin/dynamiccl
  run --separate-stderr alone/bin/dynamiccl zero estimate --parameters 7.5B --ranks 64 --json
  [ "$status" -eq 0 ]
  python3 -c 'import json,sys; d=json.loads(sys.argv[1]); assert d["schema"]==1; three=d["bytes_by_stage"][3]; assert three["total"]-three["buffers"]==1.875e9, d' "$output"
  run --separate-stderr alone/bin/dynamiccl zero estimate --parameters many
  [ "$status" -eq 2 ]
  [ -z "$output" ]
  for words in "train -n 2 --stage 1 --data text" "-n 2 -- train --stage 1" "-- train --stage 1"; do
    # shellcheck disable=SC2086
    run --separate-stderr alone/bin/dynamiccl zero $words
    [ "$status" -eq 3 ]
    [[ "$stderr" == *"dynamiccl-zero"*"hint:"* ]]
  done
}

@test "inspect shows what a policy would choose, and with options about a call who decides it" {
  dynamiccl inspect starter --json | python3 -c 'import json, sys; assert json.load(sys.stdin)["choices"]'
  for options in "--bytes 64K" "--collective reduce_scatter" "--ranks 64 --nodes 8" --all; do
    # shellcheck disable=SC2086
    dynamiccl inspect starter $options --json | python3 -c 'import json, sys; assert json.load(sys.stdin)["configs"]'
  done
  printf 'allreduce,0,1000000,ring,ll,-1,-1,-1\n' > rules.csv
  run dynamiccl inspect starter --bytes 64K --rules rules.csv
  [[ "$output" == *"decides  the rule of line 1"* ]]
  run dynamiccl inspect starter --ranks 3 --nodes 2
  [ "$status" -eq 2 ]
  [[ "$output" == *"3 ranks do not lie evenly on 2 nodes"* ]]
}

@test "config show prints what is set, and nothing else" {
  [ "$(env -i DYNAMICCL_MODE=observe "$DYNAMICCL_BIN" config show)" = DYNAMICCL_MODE=observe ]
  run --separate-stderr env -i "$DYNAMICCL_BIN" config show
  [ -z "$output" ]
  [[ "$stderr" == *"nothing is set"* ]]
}

@test "doctor --compare-nccl says what an upgrade of NCCL changes" {
  run --separate-stderr dynamiccl doctor --compare-nccl 2.28.9 2.32.3 --machine dgx_b200
  [ "$status" -eq 0 ]
  [[ "${lines[0]}" == "NCCL 2.28.9 -> 2.32.3" ]]
  [[ "$output" == *"NVLSTree/Simple"* ]]
  [[ "$output" != *"dgx_h100"* ]]
  run --separate-stderr dynamiccl doctor --compare-nccl 2.28.9 2.32.3 --json
  echo "$output" | python3 -c '
import json, sys
found = json.load(sys.stdin)
comparison = found["comparisons"][0]
assert found["schema"] == 1 and comparison["before"] == "2.28.9" and comparison["after"] == "2.32.3"
pairs = [r for r in comparison["ranges"] if
         [r["before"][k] for k in ("algorithm", "protocol")] != [r["after"][k] for k in ("algorithm", "protocol")]]
assert pairs and comparison["other_algorithm_or_protocol"] >= len(pairs), comparison
assert all(r["bytes"][0] <= r["bytes"][1] and r["after"]["expected_us"][0] > 0 for r in pairs)'
}

@test "doctor --compare-nccl answers wrong releases, machines and files with what to do" {
  run dynamiccl doctor --compare-nccl 2.28.9 2.32
  [ "$status" -eq 2 ]
  [[ "$output" == *"no release of NCCL '2.32'"*"did you mean 2.32.3"* ]]
  run dynamiccl doctor --compare-nccl 2.28.9 2.32.3 --machine h100
  [ "$status" -eq 2 ]
  [[ "$output" == *"did you mean dgx_h100"* ]]
  run dynamiccl doctor --compare-nccl 2.28.9
  [ "$status" -eq 2 ]
  run dynamiccl doctor --machine dgx_h100
  [ "$status" -eq 2 ]
  [[ "$output" == *"requires --compare-nccl"* ]]
  printf '{"magic":"x"}\n' > cut.nccl-choices
  run dynamiccl doctor --compare-nccl 2.28.9 2.32.3 --choices cut.nccl-choices
  [ "$status" -ne 0 ]
  [[ "$output" == *"cut.nccl-choices:1: not a file of NCCL's choices"* ]]
}

@test "the tables of docs/results/nccl-releases.md are what doctor --compare-nccl prints" {
  page="$DYNAMICCL_SOURCE/docs/results/nccl-releases.md"
  releases="$(sed -n 's/^<!-- dynamiccl doctor --compare-nccl \(.*\) --markdown -->$/\1/p' "$page")"
  [ -n "$releases" ]
  # shellcheck disable=SC2086
  dynamiccl doctor --compare-nccl $releases --markdown > tables.md
  sed '1,/^<!-- dynamiccl/d' "$page" | diff tables.md -
}

@test "docs/settings.md is what config env --markdown prints" {
  dynamiccl config env --markdown > settings.md
  diff settings.md "$DYNAMICCL_SOURCE/docs/settings.md"
}

@test "config env lists every setting, and config env --json and version --json are JSON" {
  dynamiccl config env | grep -q '^DYNAMICCL_MODE '
  dynamiccl config env --json | python3 -m json.tool > /dev/null
  dynamiccl version --json | python3 -m json.tool > /dev/null
  [[ "$(dynamiccl --version)" == "dynamiccl "*" (a build folder)" && "$(dynamiccl version)" == "$(dynamiccl --version)" ]]
}

@test "help comes within a tenth of a second" {
  [ -z "$SANITIZED" ] || skip "sanitizers are loaded first"
  for _ in 1 2 3; do
    start=$(date +%s%N); dynamiccl run --help > /dev/null; took=$(( $(date +%s%N) - start ))
    [ "$took" -lt 100000000 ] && return 0
  done
  return 1
}

@test "trace generate: a labelled trace whose ranks agree, and errors that say what to do" {
  run dynamiccl trace generate --framework fsdp2 --model gpt:layers=2,hidden=64,vocabulary=512,sequence=16 \
    --data-parallel 4 --shard-group 2 -o g.ctrace
  [ "$status" -eq 0 ]
  run dynamiccl trace show g.ctrace
  [ "$status" -eq 0 ]
  [[ "$output" == *"g.ctrace: 4 ranks"* ]]
  run dynamiccl trace generate --explain --framework ddp
  [ "$status" -eq 0 ]
  [[ "$output" == *"find_unused_parameters"* ]]
  run dynamiccl trace generate --framework ddp --set bucket_mb=25 -o g.ctrace
  [ "$status" -eq 2 ]
  [[ "$output" == *"no setting 'bucket_mb'"* ]]
  run dynamiccl trace generate --framework ddp
  [ "$status" -eq 2 ]
  [[ "$output" == *"--output is missing"* ]]
}

@test "a file that is not there: exit 2, and how such a file is made" {
  for words in "replay job.ctrace" "simulate job.ctrace" "trace show job.ctrace" "report job.ctrace -o r.html"; do
    # shellcheck disable=SC2086
    run dynamiccl $words
    [ "$status" -eq 2 ]
    [[ "$output" == *job.ctrace*"hint:"*"dynamiccl record -o run.ctrace -- PROGRAM"* ]] || { echo "$words: $output"; false; }
  done
  run dynamiccl calibrate absent.measurements -o none.toml
  [[ "$output" == *"dynamiccl sweep -o run.measurements"* ]]
  run dynamiccl run --policy absent.dcpolicy -- true
  [ "$status" -eq 2 ]
  [[ "$output" == *"dynamiccl train"* ]]
  run dynamiccl inspect absent.dcsite
  [ "$status" -eq 2 ]
  [[ "$output" == *"DYNAMICCL_SITE_STORE"* ]]
}

@test "the help's sentences stand below each other" {
  dynamiccl --help | sed -n '/^Commands/,$p' | grep '^  ' > commands.txt
  [ "$(cut -c1-13 commands.txt | grep -c '^  [a-z]* *$')" -eq "$(wc -l < commands.txt)" ]
  [ "$(cut -c14 commands.txt | grep -c '[A-Z]')" -eq "$(wc -l < commands.txt)" ]
}

@test "a standard output that cannot be written is an error, of few lines and of many" {
  run bash -c '"$DYNAMICCL_BIN" version > /dev/full'
  [ "$status" -eq 3 ]
  [[ "$output" == *"standard output cannot be written: No space left on device"*"hint: "* ]]
  dynamiccl trace generate --framework ddp --model gpt:layers=2,hidden=64 --data-parallel 2 --steps 50 -o g.ctrace
  for command in "trace export g.ctrace --to csv" "inspect starter --json" "completion bash"; do
    run bash -c '"$DYNAMICCL_BIN" '"$command"' > /dev/full'
    [ "$status" -eq 3 ]
    [[ "$output" == *"error: standard output"*"No space left on device"* ]]
  done
}

@test "a folder for results that does not exist is refused before the job starts, and so is one for temporary files" {
  for options in "record -o absent/run.ctrace" "record -o run.ctrace --json absent/r.json" "run --json absent/r.json" \
    "ab default ring/simple/1 --trace absent/t.ctrace" "ab default ring/simple/1 --effects absent/e.measurements"; do
    run dynamiccl $options -n 2 -- touch started
    [ "$status" -eq 2 ]
    [[ "$output" == *"cannot write 'absent/"*"No such file or directory"*"hint: check "* ]]
  done
  run dynamiccl record -o run.%r.ctrace -n 2 -- touch started
  [ "$status" -eq 2 ]
  [[ "$output" == *"run.%r.ctrace: the path of a merged trace cannot have %r in it"*"hint: "* ]]
  TMPDIR="$PWD/absent" run dynamiccl ab default ring/simple/1 -n 2 -- touch started
  [ "$status" -eq 3 ]
  [[ "$output" == *"no folder for temporary files"*"hint: set TMPDIR"* ]]
  [ ! -e started ]
}

@test "train and eval refuse an output that cannot be written before they begin" {
  mkdir -p folder
  for outputs in "train s.measurements -o p.dcpolicy --json nowhere/p.json" "train s.measurements -o nowhere/p.dcpolicy" \
      "train s.measurements --output=folder" "train s.measurements -o /dev/null" "eval p.dcpolicy s.measurements --json=nowhere/e.json"; do
    # shellcheck disable=SC2086
    run dynamiccl $outputs
    [ "$status" -eq 2 ]
    [[ "$output" == *"nowhere/"*"cannot write"* || "$output" == *"cannot write 'nowhere/"* || "$output" == *"folder: is a folder"* ||
      "$output" == *"/dev/null: is a device, not a regular file"* ]]
  done
  run dynamiccl eval p.dcpolicy s.measurements --json /dev/null
  [[ "$output" != *"is a device"* ]]
}

# The inputs are no traces. A command that has begun its work reports that, and these commands must not get so far.
@test "every command that reads traces or measurements checks its output first, and leaves no file" {
  mkdir -p folder
  touch junk
  writers_into_devices=("trace import junk -o @" "trace merge junk -o @" "trace recover junk -o @"
    "trace generate --framework none -o @" "inspect junk --effects @")
  for words in "why junk -o @" "report junk -o @" "calibrate junk -o @" "trace export junk --to csv -o @" \
      "trace archive junk -o @" "trace unarchive junk -o @" "replay junk --compare --best-rules @" \
      "canary none none --machine none --rules @" "bench allreduce --json @" "sweep -o @" "${writers_into_devices[@]}"; do
    for output in absent/out folder /dev/null; do
      [[ "$output" != /dev/null || " ${writers_into_devices[*]} " != *" $words "* ]] || continue
      # shellcheck disable=SC2086
      run dynamiccl ${words//@/$output}
      [ "$status" -eq 2 ]
      [[ "$output" == *"cannot write 'absent/out': No such file"*"hint: check "* || "$output" == *"folder: is a folder"*"hint: "* ||
         "$output" == *"/dev/null: is a device"*"hint: "* ]] || { echo "$words: $output"; false; }
    done
  done
  run dynamiccl report junk --csv junk/tables
  [[ "$output" == *"junk: is a file, not a folder"* ]]
  run dynamiccl trace export junk --to ctf -o junk
  [[ "$output" == *"junk: is a file, not a folder"* ]]
  [ "$(ls)" = "$(printf 'folder\njunk')" ]
}

@test "traces are written into pipes and devices as into files" {
  dynamiccl trace generate --framework ddp --model gpt:layers=2,hidden=64 --data-parallel 2 --steps 2 -o t.ctrace
  dynamiccl trace merge t.ctrace -o merged.ctrace
  mkfifo pipe
  exec 8<>pipe 9<pipe  # The reader has the pipe open before the writer looks.
  cat <&9 > read 8>&- &
  exec 9<&-
  dynamiccl trace merge t.ctrace -o pipe
  exec 8>&-
  wait $!
  cmp read merged.ctrace
  dynamiccl trace merge t.ctrace -o >(cat > substituted)
  wait $!
  cmp substituted merged.ctrace
  dynamiccl trace recover t.ctrace -o /dev/null --json > recovered.json
  python3 -c 'import json; assert json.load(open("recovered.json"))["bytes"] is None'
  [ -c /dev/null ]
  run dynamiccl trace archive t.ctrace -o pipe
  [ "$status" -eq 2 ]
  [[ "$output" == *"pipe: is a pipe, not a regular file"* ]]
}

@test "a disk without room is refused before the work" {
  unshare -rm true 2> none || skip "no mounts of an own in this place"
  mkdir -p disk
  run unshare -rm bash -c 'mount -t tmpfs -o size=4k none disk && echo x > disk/x && "$DYNAMICCL_BIN" why disk/x -o disk/why.html; ls disk'
  [[ "$output" == *"cannot write 'disk/why.html': No space left on device"*"hint: make room"*x ]]
}
