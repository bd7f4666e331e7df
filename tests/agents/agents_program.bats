#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# Tests dynamiccl-agents as `dynamiccl train` and `eval` start it: its JSON output, and that equal inputs give equal
# files. DYNAMICCL_BIN is the program, TRAINED the folder of train_policy.sh.

# Trains two more policies in $RUNS: one from the same inputs as $TRAINED, and one whose config agent is trained
# further.
setup_file() {
  bats_require_minimum_version 1.5.0
  export SWEEP="$TRAINED/c.measurements" POLICY="$TRAINED/p.dcpolicy" RUNS="$BATS_FILE_TMPDIR"
  cd "$RUNS"
  train -o second.dcpolicy --json second.json > second.said 2> second.progress
  cp "$POLICY" first.dcpolicy
  "$DYNAMICCL_BIN" train "$SWEEP" --from first.dcpolicy -o fitted.dcpolicy --json fitted.json > fitted.said 2> fitted.progress
}

setup() { cd "$BATS_TEST_TMPDIR"; }

train() { "$DYNAMICCL_BIN" train "$SWEEP" --structure-iterations 2 --config-iterations 20 "$@"; }

@test "train --json - says on standard output what was trained, and nothing else there" {
  grep -q '^p.dcpolicy: written' "$TRAINED/talk.txt"
  "$DYNAMICCL_BIN" inspect "$POLICY" --json > inspected.json
  python3 - "$(sha256sum < "$SWEEP")" "$TRAINED/said.json" <<'PYTHON'
import json, sys
said, inspected = json.load(open(sys.argv[2])), json.load(open("inspected.json"))
assert next(iter(said)) == "schema" and said["schema"] == 1
assert said["output"] == "p.dcpolicy" and said["sha256"] == inspected["sha256"]
swept, = said["inputs"]
assert swept["kind"] == "measurements" and swept["sha256"] == sys.argv[1].split()[0]
assert said["structure"]["iterations"] == 2 and said["structure"]["loss"] > 0
assert said["config"]["measured_configs"] > 1000 and said["config"]["error_factor"] > 1
assert 0.9 < said["integers_as_floats"]["role"] <= 1 and said["seconds"] > 0
PYTHON
}

@test "equal seeds and inputs give equal files, another seed another one" {
  grep -q '^second.dcpolicy: written' "$RUNS/second.said"
  cmp "$POLICY" "$RUNS/second.dcpolicy"
  train -o other.dcpolicy --seed 2
  ! cmp -s "$POLICY" other.dcpolicy
  python3 -c 'import json, sys; assert json.load(open(sys.argv[1]))["schema"] == 1' "$RUNS/second.json"
  for threads in 2 3; do
    OMP_NUM_THREADS=$threads MKL_NUM_THREADS=$threads train -o threads.dcpolicy --threads $threads
    cmp "$POLICY" threads.dcpolicy
  done
  mkdir elsewhere && cp "$POLICY" elsewhere/first.dcpolicy
  "$DYNAMICCL_BIN" train "$SWEEP" --from elsewhere/first.dcpolicy -o again.dcpolicy --json - > again.json
  cmp "$RUNS/fitted.dcpolicy" again.dcpolicy
  python3 -c 'import json; d = json.load(open("again.json")); assert [i["kind"] for i in d["inputs"]] == ["policy", "measurements"], d'
}

# bats test_tags=long
@test "neither the order of the inputs nor their folders change the policy" {
  local effects="$SAMPLES/../../policies/step_effects"
  mkdir here && cp "$SWEEP" here/z.measurements
  train -o one.dcpolicy --measurements "$effects/one-node.measurements" "$effects/two-nodes-slow.measurements"
  cp "$effects"/{one-node,two-nodes-slow}.measurements here
  "$DYNAMICCL_BIN" train here/two-nodes-slow.measurements "$SWEEP" here/one-node.measurements --structure-iterations 2 \
    --config-iterations 20 -o other.dcpolicy
  cmp one.dcpolicy other.dcpolicy
}

@test "train --inputs-only says checksums of what is learnt from, which the policy records, and writes no policy" {
  train --inputs-only --json inputs.json > said
  [ "$(ls)" = "$(printf 'inputs.json\nsaid')" ]
  "$DYNAMICCL_BIN" inspect "$POLICY" > inspected
  python3 - <<'PYTHON'
import json
learnt = json.load(open("inputs.json"))["learnt"]
assert list(learnt) == ["calls", "times"], learnt
said, inspected = open("said").read(), open("inspected").read()
for what, checksum in learnt.items():
    assert f"learns from {what} {checksum}\n" in said and f"learnt: {what} {checksum}\n" in inspected, what
PYTHON
  train --inputs-only --seed 2 --json other.json > said
  python3 -c 'import json; a, b = (json.load(open(f))["learnt"] for f in ("inputs.json", "other.json")); assert a["calls"] != b["calls"] and a["times"] == b["times"]'
}

@test "train without -o says that it needs one, before it reads anything" {
  run train --json -
  [ "$status" -eq 2 ]
  [[ "$output" == *"nothing says where to write the policy"*"-o run.dcpolicy"* ]]
}

@test "the shipped policy learnt from what the tree gives today" {
  PATH="$(dirname "$DYNAMICCL_BIN"):$PATH" "$SAMPLES/../../tools/checks/starter.py" --inputs
}

@test "a policy that was trained further records the inputs of each training" {
  cd "$RUNS"
  "$DYNAMICCL_BIN" train "$SAMPLES"/../../policies/step_effects/one-node.measurements --from fitted.dcpolicy -o "$BATS_TEST_TMPDIR/third.dcpolicy"
  cd "$BATS_TEST_TMPDIR"
  "$DYNAMICCL_BIN" inspect third.dcpolicy > inspected
  grep -q "^measurements: [0-9a-f]* one-node.measurements$" inspected
  grep -q "^earlier: 1 policy: [0-9a-f]* first.dcpolicy$" inspected
  grep -q "^earlier: 2 measurements: $(sha256sum < "$SWEEP" | cut -d ' ' -f 1) c.measurements$" inspected
  grep -q "^earlier: 2 structure_iterations: 2$" inspected
}

@test "train --from says what it keeps and what it trains, and keeps that" {
  cd "$RUNS"
  grep -q "^from first.dcpolicy: kept: .*the structure agent .*; trained further: the config agent's networks" fitted.said
  grep -qE "^the policy uses a config that promises a gain of at least [0-9.]+ %" fitted.said
  python3 -c 'import json; d = json.load(open("fitted.json"))["from"]; assert d["kept"][0] == "structure" and d["trained"][0] == "config", d'
  cd "$BATS_TEST_TMPDIR"
  cp "$POLICY" first.dcpolicy
  run "$DYNAMICCL_BIN" train "$SWEEP" --from first.dcpolicy -o fitted.dcpolicy --structure-iterations 2
  [ "$status" -eq 2 ]
  [[ "$output" == *"--from excludes --structure-iterations"* ]]
  "$DYNAMICCL_BIN" train --help | grep -q "trees' splits and the range of NCCL releases stay"
}

# bats test_tags=long
@test "train --from with traces trains the structure agent further, and keeps no less than it says" {
  cp "$POLICY" first.dcpolicy
  "$DYNAMICCL_BIN" trace generate --framework dynamiccl-zero --model gpt:layers=2 --set stage=1 -o run.ctrace
  "$DYNAMICCL_BIN" train "$SWEEP" --from first.dcpolicy --trace run.ctrace -o fitted.dcpolicy --json fitted.json > said
  grep -q "^from first.dcpolicy: kept: .*; trained further: the structure agent (.*), the config agent's networks" said
  grep -q "^structure: on top of the policy's, 1 recorded and [0-9]* generated sequences, 600 iterations" said
  python3 -c '
import json
said = json.load(open("fitted.json"))
assert said["from"]["trained"][:2] == ["structure", "config"] and "structure" not in said["from"]["kept"], said
assert [i["kind"] for i in said["inputs"]] == ["policy", "trace", "measurements"], said
assert said["structure"]["from_a_policy"] and said["thresholds"]["quiet_calls"] > 0, said'
  "$DYNAMICCL_BIN" eval fitted.dcpolicy run.ctrace > judged 2> noted
  grep -q "^policy " judged
  grep -q "^run.ctrace: the policy was trained on it, so it shows no other job$" noted
  "$DYNAMICCL_BIN" eval first.dcpolicy run.ctrace > judged 2> noted
  ! grep -q "trained on it" noted
}

@test "train refuses traces without labels, from a policy and from nothing" {
  cp "$POLICY" first.dcpolicy
  "$DYNAMICCL_BIN" trace import "$SAMPLES/flight_recorder_rank_1.json" -o bare.ctrace
  local from
  for from in "--from first.dcpolicy" ""; do
    # shellcheck disable=SC2086
    run "$DYNAMICCL_BIN" train "$SWEEP" $from --trace bare.ctrace -o fitted.dcpolicy
    [ "$status" -eq 2 ]
    [[ "$output" == *"no call of the traces has a label of role or stage"*"hint: record a job that names its stages"* ]]
    [ ! -e fitted.dcpolicy ]
  done
}

@test "train --from names the effects on steps that it keeps" {
  cp "$POLICY" first.dcpolicy
  "$DYNAMICCL_BIN" train "$SAMPLES"/../../policies/step_effects/*.measurements --from first.dcpolicy -o effects.dcpolicy > said
  grep -q "^from first.dcpolicy: .*; trained further: what configs do to steps" said
  "$DYNAMICCL_BIN" train "$SAMPLES"/../../policies/step_effects/one-node.measurements --from effects.dcpolicy -o fewer.dcpolicy --json fewer.json > said
  grep -q "^from effects.dcpolicy: .*; trained further: nothing; learnt anew from these effects alone: what configs do to steps$" said
  python3 -c 'import json; d = json.load(open("fewer.json"))["from"]; assert d["replaced"] == ["effects"] and "effects" not in d["trained"] + d["kept"], d'
  "$DYNAMICCL_BIN" train "$SWEEP" --from effects.dcpolicy -o fitted.dcpolicy --json fitted.json > said
  grep -q "^from effects.dcpolicy: kept: .*what configs do to steps.*; trained further: " said
  python3 -c 'import json; d = json.load(open("fitted.json"))["from"]; assert "effects" in d["kept"], d'
}

@test "train says on standard error which phase it is in, on how much data, and of how many" {
  cd "$RUNS"
  [ "$(grep -c '^dynamiccl: [1-4] of [34]: ' second.progress)" -ge 3 ]
  grep -q '^dynamiccl: 1 of [34]: structure agent: 2 iterations on generated sequences and 0 recorded$' second.progress
  grep -qE '^dynamiccl: 2 of [34]: config agent: 20 iterations on [0-9]{4,} measured configs$' second.progress
  ! grep -q '^dynamiccl:' second.said
  grep -q '^dynamiccl: 1 of 1: config agent: 300 iterations on' fitted.progress
}

@test "the help of train and eval lists the options of the agents' program" {
  run "$DYNAMICCL_BIN" train --help
  [ "$status" -eq 0 ]
  [[ "$output" == *"--home "*"Options of dynamiccl-agents:"*"--structure-iterations "*"=10000"*"--threads "* ]]
  [ "$(grep -c -- '--help  ' <<<"$output")" -eq 1 ]
  run "$DYNAMICCL_BIN" eval -h
  [ "$status" -eq 0 ]
  [[ "$output" == *"Options of dynamiccl-agents:"*"--trained-on "* ]]
}

@test "wrong usage of train is an error like those of other commands" {
  run --separate-stderr "$DYNAMICCL_BIN" train -o p.dcpolicy
  [ "$status" -eq 2 ]
  [ "$stderr" = "error: dynamiccl train: --measurements is required
  hint: see \`dynamiccl train --help\`" ]
}

@test "what cannot be trained or written leaves standard output empty" {
  run --separate-stderr "$DYNAMICCL_BIN" train missing.measurements -o p.dcpolicy --json -
  [ "$status" -eq 2 ]
  [ -z "$output" ]
  [[ "$stderr" == *"missing.measurements"* ]]
  run --separate-stderr train -o p.dcpolicy --json nowhere/p.json
  [ "$status" -eq 2 ]
  [[ "$stderr" == *"cannot write 'nowhere/p.json'"* ]]
}

@test "eval --json has a schema too" {
  cp "$POLICY" p.dcpolicy
  "$DYNAMICCL_BIN" eval p.dcpolicy "$SWEEP" --json - > eval.json
  python3 -c 'import json; said = json.load(open("eval.json")); assert next(iter(said)) == "schema" and said["schema"] == 1 and said["config"]'
}

@test "eval without a policy, and with nothing to judge it on, says what to give" {
  run "$DYNAMICCL_BIN" eval --measurements "$SWEEP"
  [ "$status" -eq 2 ]
  [[ "$output" == *"give --policy"* ]]
  cp "$POLICY" p.dcpolicy
  run "$DYNAMICCL_BIN" eval --policy p.dcpolicy
  [ "$status" -eq 2 ]
  [[ "$output" == *"give --trace, --measurements or both"* ]]
}
