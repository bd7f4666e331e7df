#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Installs the wheel into a fresh virtual environment without a compiler or a package index. Tests the command, the
# objects, and an unmodified DDP script that runs under torchrun and is recorded.
#   tests/packages/wheel.sh [folder of packages]
#   TORCH_PYTHON       a Python with PyTorch, which the fresh environment uses; without it, the DDP script is skipped
#   TORCH_BACKEND      lib/python of a build with LibTorch, whose backend "dynamiccl" becomes a wheel too; without it
#                      gloo is used
# shellcheck source=tests/packages/packages.bash
source "$(dirname "${BASH_SOURCE[0]}")/packages.bash"
wheel="$(one_package 'dynamiccl-*.whl')"
python="${TORCH_PYTHON:-python3}"
"$python" -m venv "$work/venv" >"$work/log" 2>&1 || skip "$python makes no virtual environment (Debian: python3-venv)"
bin="$work/venv/bin"
unset PYTHONPATH
export PIP_NO_INDEX=1 PIP_DISABLE_PIP_VERSION_CHECK=1 NO_COLOR=1 PATH="$bin:/usr/bin:/bin"
cd "$work"

pip install -q "$wheel"
[[ "$(dynamiccl version)" == *" (a wheel, by pip)" ]] || fail "version: $(dynamiccl version)"
[[ "$(dynamiccl doctor)" == *"Installed"*"a wheel, by pip"* ]] || fail "doctor does not say how it was installed"
for file in man/man1/dynamiccl-why.1 bash-completion/completions/dynamiccl; do
  [[ -s "venv/share/$file" ]] || fail "no $file below share of the environment"
done
object="$(dynamiccl path --preload)"
[[ "$object" == "$work"/venv/lib/*/libdynamiccl.so && -x "$(python -c 'import dynamiccl; print(dynamiccl.program())')" ]] || fail "path: $object"
[[ "$(python -c 'import dynamiccl; print(dynamiccl.preload())')" == "$object" ]] || fail "the package names another object"
[[ "$(dynamiccl path --tuner)" == "$object" ]] || fail "path --tuner: $(dynamiccl path --tuner)"
python -c "import ctypes, dynamiccl; ctypes.CDLL(dynamiccl.preload()).ncclTunerPlugin_v5"
python -m dynamiccl record -o bench.ctrace -n 2 -- dynamiccl bench all_reduce -b 1K -e 64K -f 8 -n 3 -w 1 >log 2>&1 || { cat log; fail "two ranks over hostccl"; }
dynamiccl trace show bench.ctrace | grep -q AllReduce || fail "the bench is not in the trace"
status=0
dynamiccl record 2>/dev/null || status=$?
[[ $status -eq 2 ]] || fail "the command's exit code is lost: $status, not 2"

train() {
  local torch_folder tell=()
  torch_folder="$("$python" -c 'import torch, os; print(os.path.dirname(os.path.dirname(torch.__file__)))' 2>/dev/null)" || {
    printf 'left out: no Python with PyTorch (TORCH_PYTHON)\n'
    return 0
  }
  echo "$torch_folder" >"$(python -c 'import sysconfig; print(sysconfig.get_path("purelib"))')/borrowed_torch.pth"
  if [[ -n "${TORCH_BACKEND:-}" ]]; then
    python -B "$root/packaging/make_wheel.py" --torch-backend "$TORCH_BACKEND" "$work/wheels"
    pip install -q --no-deps "$work"/wheels/*.whl
    tell=(--backend dynamiccl)
  else
    printf 'no backend "dynamiccl" (TORCH_BACKEND): gloo, which makes no NCCL calls, is left as it is\n'
    tell=(--backend gloo)
  fi
  cp "$root/tests/packages/train_ddp.py" .
  python -m torch.distributed.run --nproc-per-node 2 train_ddp.py --backend gloo >alone.log 2>&1 || { cat alone.log; fail "the script by itself"; }
  DYNAMICCL_MODE=observe dynamiccl record -o ddp.ctrace -- python -m torch.distributed.run --nproc-per-node 2 train_ddp.py "${tell[@]}" >ddp.log 2>&1 ||
    [[ "${tell[1]}" == gloo ]] || { cat ddp.log; fail "the script recorded"; }
  # The losses must be equal bit for bit, because the sum of two ranks has only one order.
  diff <(grep '^loss' alone.log) <(grep '^loss' ddp.log) || fail "other losses than without"
  [[ "$(grep -c '^loss' ddp.log)" -eq 5 ]] || fail "not five steps"
  [[ -z "${TORCH_BACKEND:-}" ]] || dynamiccl trace show ddp.ctrace | tee shown | head -12
  [[ -z "${TORCH_BACKEND:-}" ]] || grep -q AllReduce shown || fail "no gradients in the trace"
}
train

pip uninstall -q -y dynamiccl
[[ -z "$(find "$work/venv" -path '*dynamiccl/*' -o -name 'dynamiccl*.1' | head -3)" && ! -e "$bin/dynamiccl" ]] || fail "pip leaves files behind"
printf 'installed, used and removed\n'
