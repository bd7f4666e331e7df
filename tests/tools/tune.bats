#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# Tests `dynamiccl tune` and `run --settings` on jobs without Python. DYNAMICCL_BIN is the program. Their effect on
# PyTorch is tested in tests/zero_workloads/torch_backend/settings_test.py.

setup() {
  bats_require_minimum_version 1.5.0
  cd "$BATS_TEST_TMPDIR"
  export NO_COLOR=1
}

# Makes a job with a repeating step of two calls. The model is small, because a start takes time in proportion to its
# bytes.
make_job() {
  "$DYNAMICCL_BIN" trace generate --framework ddp --model gpt:layers=4,hidden=64,vocabulary=2048,sequence=64 --data-parallel 2 \
    --steps "${1:-12}" -o job.ctrace
  job=("$DYNAMICCL_BIN" replay job.ctrace)
}

settings() {
  printf '{"format": "dynamiccl-settings", "version": %s, %s}\n' "$1" "$2" > s.json
}

@test "of a job without DDP and FSDP2 the configs of NCCL alone are tried, and the files run" {
  make_job
  run --separate-stderr "$DYNAMICCL_BIN" tune -n 2 --budget 60s --try ring/simple/1 tree/simple -- "${job[@]}"
  [ "$status" -eq 0 ]
  [[ "$output" == *"no framework that can be set on 2 ranks"*"2 AllReduces"* ]]
  [[ "$stderr" == *"only NCCL's configs are tried"* ]]
  [ "$(python3 -c 'import json; t = json.load(open("tune/tune.json")); print(len(t["tried"]), t["framework"])')" = "3 no framework that can be set" ]
  [ ! -e tune/tune.journal ]
  run "$DYNAMICCL_BIN" run -n 2 --settings tune/tuned.settings.json -- "${job[@]}"
  [ "$status" -eq 0 ]
}

@test "bounds on the channels are tried in starts of their own, and the job's output proves them" {
  make_job
  run --separate-stderr "$DYNAMICCL_BIN" tune -n 2 --budget 60s --try min_ctas=4 -- "${job[@]}"
  [ "$status" -eq 0 ]
  [ "$(python3 -c 'import json; t = json.load(open("tune/tune.json")); print([(s["setting"], len(s["turns"]) > 1, "not in effect" in s["given_up"]) for s in t["tried"]])')" = "[('default', True, False), ('min_ctas=4', True, False)]" ]
  NCCL_MAX_CTAS=8 run --separate-stderr "$DYNAMICCL_BIN" tune -n 2 --budget 60s --try min_ctas=4 -o pinned -- "${job[@]}"
  [[ "$output" == *"min_ctas=4: not in effect: no line of the job"* ]]
}

@test "NCCL's configs take turns within one start, as many as its steps tell apart" {
  make_job 200
  run --separate-stderr "$DYNAMICCL_BIN" tune -n 2 --budget 1s -- "${job[@]}"
  [ "$status" -eq 0 ]
  [[ "$stderr" == *"9 settings in turns of 2 steps"*"ring/simple/1"*"ring/ll"* ]]
  # One start is only watched, and in another one the configs take turns. The remaining starts are those of the turns.
  python3 -c 'import json; t = json.load(open("tune/tune.json")); assert t["starts"] == 2 + sum(len(r["turns"]) for r in t["tried"]), t'
  make_job 12
  run --separate-stderr "$DYNAMICCL_BIN" tune -n 2 --budget 1s -o short -- "${job[@]}"
  [ "$status" -eq 0 ]
  [[ "$output" == *"Nothing was tried"*"11 of NCCL's configs were not tried: a start is too short. After the calls that show its steps 0 steps are left, and each config needs 14"* ]]
}

@test "a trial that hangs or fails is given up, and is not called a trial that won nothing" {
  make_job
  printf '"%s" replay job.ctrace; [ -z "$DYNAMICCL_RULES" ] || exec sleep 1000\n' "$DYNAMICCL_BIN" > hang.sh
  run --separate-stderr "$DYNAMICCL_BIN" tune -n 2 --budget 60s --start-limit 8s --try ring/simple/1 -- sh hang.sh
  [ "$status" -eq 0 ]
  [[ "$output" == *"Nothing was compared"*"ring/simple/1: the job stood still: it made no call in its last "*" s, and did not end"* ]]
  [[ "$output" != *"Nothing to win"* ]]
  printf '"%s" replay job.ctrace; [ -z "$DYNAMICCL_RULES" ] || exit 9\n' "$DYNAMICCL_BIN" > fail.sh
  run --separate-stderr "$DYNAMICCL_BIN" tune -n 2 --budget 60s -o failed --try ring/simple/1 -- sh fail.sh
  [ "$status" -eq 0 ]
  [[ "$output" == *"Nothing was compared"*"ring/simple/1: the job failed: rank "*"exit code 9"* ]]
  [[ "$output" != *"Nothing to win"* ]]
}

@test "Megatron-LM gets its settings as flags, and the calls prove them" {
  # The script replays the calls that Megatron-LM makes with its flags.
  for size in 40000000 1000000; do
    "$DYNAMICCL_BIN" trace generate --framework megatron --model gpt:layers=4,hidden=256,vocabulary=8192,sequence=64 \
      --set use_distributed_optimizer=true,overlap_grad_reduce=true,bucket_size=$size --steps 12 -o $size.ctrace
  done
  cat > pretrain_gpt.py <<'SCRIPT'
trace=40000000
while [ $# -gt 0 ]; do if [ "$1" = --ddp-bucket-size ]; then trace=$2; fi; shift; done
exec "$DYNAMICCL_BIN" replay $trace.ctrace
SCRIPT
  job=(sh pretrain_gpt.py --use-distributed-optimizer --overlap-grad-reduce --overlap-param-gather)
  run --separate-stderr "$DYNAMICCL_BIN" tune -n 2 --budget 1s --try ddp_bucket_size=1000000 -- "${job[@]}"
  [ "$status" -eq 0 ]
  [[ "$output" == *"Megatron-LM on 2 ranks"*"1 ReduceScatter of "*"ddp_bucket_size=1000000"* ]]
  python3 -c 'import json; row = json.load(open("tune/tune.json"))["tried"][1]; assert "5 of 5 sums of gradients" in row["seen"], row'
  settings 1 '"megatron": {"ddp_bucket_size": 1000000}'
  run --separate-stderr "$DYNAMICCL_BIN" run -n 2 --settings s.json -- "${job[@]}" --ddp-bucket-size 40000000
  [ "$status" -eq 0 ]
  [[ "$stderr" == *"megatron.ddp_bucket_size = 1000000: in effect: 5 of 5 sums of gradients"* ]]
  run --separate-stderr "$DYNAMICCL_BIN" run -n 2 --settings s.json -- sh pretrain_gpt.py
  [[ "$stderr" == *"megatron.ddp_bucket_size = 1000000: not in effect: without --overlap-grad-reduce"* ]]
}

@test "a tune whose budget ends says which budget its next turn needs" {
  make_job
  # A start takes at least 0.3 s, so the five starts of two turns do not fit into the budget.
  run "$DYNAMICCL_BIN" tune -n 2 --budget 1s --try ring/simple/1 -- sh -c 'sleep 0.3; exec "$@"' job "${job[@]}"
  [[ "$status" -eq 0 && "$output" =~ "the budget of 1 s ended first. The same command goes on with --budget "([0-9]+)"s or more" ]]
  [ "${BASH_REMATCH[1]}" -gt 1 ]
}

@test "an interrupted tune goes on where it ended" {
  make_job
  command=("$DYNAMICCL_BIN" tune -n 2 --budget 60s --try ring/simple/1 -- "${job[@]}")
  "${command[@]}" > out 2> err &
  tune=$!
  until [ -e tune/tune.journal ]; do kill -0 $tune; sleep 0.1; done
  kill -INT $tune
  code=0
  wait $tune || code=$?
  [ "$code" -eq 130 ]
  grep -q "goes on where this one ended" err
  run --separate-stderr "${command[@]}"
  [ "$status" -eq 0 ]
  [[ "$stderr" == *"going on after "*" of an earlier tune"* ]]
}

@test "an interrupted tune does not go on with another script or other variables of NCCL" {
  make_job
  printf 'exec "%s" replay job.ctrace\n' "$DYNAMICCL_BIN" > job.sh
  command=("$DYNAMICCL_BIN" tune -n 2 --budget 60s --try ring/simple/1 -- sh job.sh)
  "${command[@]}" > out 2> err &
  tune=$!
  until [ -e tune/tune.journal ]; do kill -0 $tune; sleep 0.1; done
  kill -INT $tune
  wait $tune || true
  cp tune/tune.journal before
  NCCL_MAX_NCHANNELS=2 run "${command[@]}"
  [[ "$status" -eq 2 && "$output" == *"is of another unfinished tune"*"variables such as NCCL_ALGO changed since then"* ]]
  echo ': edited' >> job.sh
  run "${command[@]}"
  [[ "$status" -eq 2 && "$output" == *"is of another unfinished tune"*"the script or another file changed"* ]]
  cmp tune/tune.journal before
}

@test "after a failure of the job as it is the same command starts it again" {
  make_job
  # The third start of the unchanged job fails. The first start is only watched, and the other two belong to turns.
  cat > job.sh <<'SCRIPT'
if [ -z "$DYNAMICCL_RULES" ]; then
  [ "$RANK" = 1 ] || echo start >> starts
  [ "$RANK" = 1 ] || [ "$(wc -l < starts)" != 3 ] || exit 9
fi
exec "$DYNAMICCL_BIN" replay job.ctrace
SCRIPT
  command=("$DYNAMICCL_BIN" tune -n 2 --budget 60s --try ring/simple/1 -- sh job.sh)
  run --separate-stderr "${command[@]}"
  [ "$status" -eq 4 ]
  [[ "$stderr" == *"the job as it is failed in turn 2"*"the same command goes on with another start of it"* ]]
  run --separate-stderr "${command[@]}"
  [ "$status" -eq 0 ]
  [[ "$stderr" == *"going on after "*" of an earlier tune"* ]]
}

# Writes job.sh. In its starts FROM to TO, the unchanged job has different steps. In these starts it hangs if HANGS is
# set, and otherwise first sleeps for LASTS seconds.
make_job_with_evaluation() {
  make_job
  "$DYNAMICCL_BIN" trace generate --framework ddp --model gpt:layers=2,hidden=128,vocabulary=2048,sequence=64 --data-parallel 2 --steps 12 -o evaluation.ctrace
  cat > job.sh <<'SCRIPT'
trace=job.ctrace
if [ -z "$DYNAMICCL_RULES" ]; then
  echo start >> starts
  number="$(wc -l < starts)"
  if [ "$number" -ge "$FROM" ] && [ "$number" -le "$TO" ]; then
    [ -z "$HANGS" ] || exec sleep 1000
    sleep "${LASTS:-0}"
    trace=evaluation.ctrace
  fi
fi
exec "$DYNAMICCL_BIN" run -n 2 -- "$DYNAMICCL_BIN" replay $trace
SCRIPT
}

@test "a start of the job as it is that ends in other steps is left out, and three in a row end the tune" {
  make_job_with_evaluation
  FROM=3 TO=4 run --separate-stderr "$DYNAMICCL_BIN" tune --budget 60s --try ring/simple/1 -- sh job.sh
  [ "$status" -eq 0 ]
  [[ "$stderr" == *"a start of the job as it is was left out: its step is not known"*"starting it again"* ]]
  python3 -c 'import json; notes = json.load(open("tune/tune.json"))["notes"]; assert sum("was left out" in n for n in notes) == 2, notes'
  rm starts
  FROM=3 TO=99 run --separate-stderr "$DYNAMICCL_BIN" tune --budget 60s --try ring/simple/1 -o ended -- sh job.sh
  [ "$status" -eq 4 ]
  [[ "$stderr" == *"the job as it is failed in turn 2: its step is not known"*"; so it was in 3 starts in a row"* ]]
  [ "$(wc -l < starts)" -eq 5 ]
}

@test "a start of the job as it is that hangs, or that used up the budget, ends the tune at once" {
  make_job_with_evaluation
  FROM=3 TO=99 HANGS=1 run --separate-stderr "$DYNAMICCL_BIN" tune --budget 60s --start-limit 6s --try ring/simple/1 -- sh job.sh
  [ "$status" -eq 4 ]
  [[ "$stderr" == *"the job as it is failed in turn 2: no collective was recorded within --start-limit (6 s)"* ]]
  [ "$(wc -l < starts)" -eq 3 ]
  rm starts
  FROM=3 TO=99 LASTS=15 run --separate-stderr "$DYNAMICCL_BIN" tune --budget 15s --try ring/simple/1 -o late -- sh job.sh
  [ "$status" -eq 4 ]
  [[ "$stderr" == *"the job as it is failed in turn 2: its step is not known"* ]]
  [[ "$stderr" == *"; another start does not fit into --budget 15s"* ]]
  [[ "$stderr" =~ "another start of it with --budget "([0-9]+)"s or more" && "${BASH_REMATCH[1]}" -gt 15 ]]
  [ "$(wc -l < starts)" -eq 3 ]
}

@test "whether the ranks run over hostccl is what their traces say, not what the launcher would have chosen" {
  make_job
  home="$(dirname "$DYNAMICCL_BIN")/.."
  LD_LIBRARY_PATH="$home/lib/hostccl" run --separate-stderr "$DYNAMICCL_BIN" tune --no-hostccl -n 2 --budget 1s -- "${job[@]}"
  [ "$status" -eq 0 ]
  ! grep -q min_ctas tune/tune.json
}

@test "a second tune, pilot or demo in a folder is refused, and each tune begins its log anew" {
  make_job
  mkfifo held
  "$DYNAMICCL_BIN" tune -n 2 --budget 60s -- sh -c 'echo first tune; cat held' > out 2>&1 &
  first=$!
  until grep -q "first tune" tune/job.log 2> none; do kill -0 $first; done
  for command in tune pilot; do
    run "$DYNAMICCL_BIN" $command -n 2 -o tune -- touch started
    [[ "$status" -eq 3 && "$output" == *"another tune, pilot or demo is running in 'tune'"*"name another folder with -o"* ]]
  done
  [ ! -e started ]
  kill -INT $first
  wait $first || true
  "$DYNAMICCL_BIN" tune -n 2 --budget 1s --try ring/simple/1 -- "${job[@]}" > out 2>&1
  grep -q "first tune" tune/job.earlier.log
  ! grep -q "first tune" tune/job.log
}

@test "variables that decide which configs are in effect do not reach the starts of a tune" {
  make_job
  printf 'echo "$DYNAMICCL_MODE $DYNAMICCL_TIMES ${DYNAMICCL_RULES:+rules}" >> seen; exec "%s" replay job.ctrace\n' "$DYNAMICCL_BIN" > job.sh
  DYNAMICCL_MODE=adaptive DYNAMICCL_TIMES=all run --separate-stderr "$DYNAMICCL_BIN" tune -n 2 --budget 1s --try ring/simple/1 -- sh job.sh
  [ "$status" -eq 0 ]
  [ "$(sort -u seen)" = "$(printf 'frozen 0 rules\nobserve 0 \nobserve all ')" ]
  touch r.toml
  for command in tune pilot "ab default ring/ll"; do
    for variable in DYNAMICCL_RULES DYNAMICCL_POLICY DYNAMICCL_DECISIONS; do
      run env $variable=r.toml "$DYNAMICCL_BIN" $command -n 2 -- touch started
      [[ "$status" -eq 2 && "$output" == *"$variable is set, and settings take turns with NCCL's choice"* ]]
    done
  done
  DYNAMICCL_FRAMEWORK_SETTINGS=s.json run "$DYNAMICCL_BIN" tune -n 2 -- touch started
  [[ "$status" -eq 2 && "$output" == *"DYNAMICCL_FRAMEWORK_SETTINGS is set"* ]]
  [ ! -e started ]
}

@test "a start that reaches its limit leaves no process of a shell script behind" {
  make_job 12
  printf '"%s" run -n 2 -- "%s" replay job.ctrace; exec 3>&-; sleep 87654 & echo $! >> pids; wait; true\n' "$DYNAMICCL_BIN" "$DYNAMICCL_BIN" > job.sh
  run --separate-stderr "$DYNAMICCL_BIN" tune --budget 1s --start-limit 5s --try ring/simple/1 -- sh job.sh
  [ "$status" -eq 0 ]
  [ -s pids ]
  for pid in $(< pids); do
    if kill -0 "$pid" 2> /dev/null; then false; fi
  done
}

@test "rules of a settings file decide, and others beside them are refused" {
  make_job
  printf 'version = 1\n[[rule]]\ncollective = "allreduce"\nconfig = "ring/ll/1"\n' > r.toml
  settings 1 '"rules": "r.toml"'
  run --separate-stderr "$DYNAMICCL_BIN" run -n 2 --settings s.json -- "${job[@]}"
  [ "$status" -eq 0 ]
  [[ "$stderr" == *"rules"*"r.toml"* ]]
  run "$DYNAMICCL_BIN" run -n 2 --settings s.json --rules r.toml -- "${job[@]}"
  [ "$status" -eq 2 ]
  [[ "$output" == *"s.json has rules, and --rules names others"* ]]
}

@test "a settings file that is damaged, newer or wrong stops the run before it starts" {
  settings 2 '"ddp": {}'
  run "$DYNAMICCL_BIN" run -n 2 --settings s.json -- touch started
  [ "$status" -eq 2 ]
  [[ "$output" == *"s.json: version 2, this build reads 1"*"hint: use the dynamiccl that wrote it"* ]]
  settings 1 '"ddp": {"bucket_cap_mb": -1}'
  run "$DYNAMICCL_BIN" run -n 2 --settings s.json -- touch started
  [[ "$status" -eq 2 && "$output" == *"ddp.bucket_cap_mb is -1, not a number above 0"* ]]
  settings 1 '"rules": "none.toml"'
  run "$DYNAMICCL_BIN" run -n 2 --settings s.json -- touch started
  [[ "$status" -eq 2 && "$output" == *"none.toml"* ]]
  [ ! -e started ]
}

@test "a settings file that names nothing is said to change nothing" {
  for content in '"origin": {}' '"ddp": {}, "fsdp2": {}'; do
    settings 1 "$content"
    run --separate-stderr "$DYNAMICCL_BIN" run -n 2 --settings s.json -- true
    [[ "$status" -eq 0 && "$stderr" == *"s.json has no setting and no rules: the job runs as it is"* ]]
  done
}

@test "a setting for PyTorch in a job without it is said not to be in effect" {
  make_job
  settings 1 '"ddp": {"bucket_cap_mb": 100}'
  run --separate-stderr "$DYNAMICCL_BIN" run -n 2 --settings s.json -- "${job[@]}"
  [ "$status" -eq 0 ]
  [[ "$stderr" == *"ddp.bucket_cap_mb = 100: not in effect: the hook saw no DDP"* ]]
}

@test "a job that fails, repeats no step or is given rules cannot be tuned" {
  run "$DYNAMICCL_BIN" tune -n 2 -- sh -c 'echo broken; exit 9'
  [[ "$status" -eq 4 && "$output" == *"the job failed"*"tune/job.log and ends with: broken" ]]
  grep -q broken tune/job.log
  make_job
  run "$DYNAMICCL_BIN" tune -- sh -c '"$0" run -n 2 -- "$0" replay job.ctrace; echo broken; exit 9' "$DYNAMICCL_BIN"
  [[ "$status" -eq 4 && "$output" == *"the job failed"*"tune/job.log and ends with: broken" ]]
  run "$DYNAMICCL_BIN" tune -n 2 -- true
  [[ "$status" -eq 4 && "$output" == *"no collective was recorded"*"has to name the backend dynamiccl"* ]]
  run "$DYNAMICCL_BIN" tune -n 2 -- "$DYNAMICCL_BIN" bench all_reduce -b 4K -e 4K -n 3 --rounds 1 --singles 1
  [[ "$status" -eq 4 && "$output" == *"no step repeats 6 times"* ]]
  run "$DYNAMICCL_BIN" tune -n 2 --mode adaptive -- true
  [[ "$status" -eq 2 && "$output" == *"--rules and --mode cannot be given"* ]]
  run "$DYNAMICCL_BIN" tune
  [ "$status" -eq 2 ]
}

@test "options of a tune or pilot that cannot be meant are refused before the job starts" {
  for options in "tune --budget 0" "tune --budget -5s" "tune --start-limit 0" "tune --try nonsense" "tune --try bucket_cap_mb=x" \
      "tune --try ring/simple/1 ring/none" "pilot --budget 0"; do
    run "$DYNAMICCL_BIN" $options -n 2 -- touch started
    [[ "$status" -eq 2 && "$output" == "error: "* ]]
  done
  [ ! -e started ]
}

@test "a result that cannot be written is shown, and a tune of another job keeps its hands off the rest" {
  make_job
  touch blocked  # The job itself blocks the result's place while it runs. Otherwise tune would refuse before it starts.
  job=(sh -c '[ ! -e blocked ] || mkdir -p tune/tune.json; exec "$@"' job "${job[@]}")
  command=("$DYNAMICCL_BIN" tune -n 2 --budget 60s --try ring/simple/1 -- "${job[@]}")
  run --separate-stderr "${command[@]}"
  [ "$status" -eq 2 ]
  [[ "$output" == *"on 2 ranks"*"ring/simple/1"* ]]
  [[ "$stderr" == *"tune/tune.json: is a folder"* ]]
  rmdir tune/tune.json
  rm blocked
  cp tune/tune.journal before
  run "$DYNAMICCL_BIN" tune -n 2 --budget 60s --try ring/simple/2 -- "${job[@]}"
  [ "$status" -eq 2 ]
  [[ "$output" == *"tune/tune.journal is of another unfinished tune: "*"ring/simple/1"*"the options or the command changed"*"another folder with -o"* ]]
  cmp tune/tune.journal before
  run --separate-stderr "${command[@]}"
  [ "$status" -eq 0 ]
  [[ "$stderr" == *"going on after "*" of an earlier tune"* ]]
  [ ! -e tune/tune.journal ]
}
