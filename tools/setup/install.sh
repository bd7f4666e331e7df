#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Installs what a build needs on Debian 12: the packages of packages.txt by apt, and LibTorch by pip into .venv.
# Safe to repeat: packages that are installed already are not changed. Prints each step.
#
#   install.sh            what the programs, the tests and the checks need
#   install.sh programs   only what the programs need
#
#   DYNAMICCL_WITHOUT_TORCH=1   skip LibTorch (builds the core, the plugin and the tools only)
#   CMAKE_PREFIX_PATH=DIR       use the LibTorch found there instead of pip's
set -euo pipefail

root="$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)"
torch_version=2.13.0
wanted="${1:-all}"

say() { printf '==> %s\n' "$*"; }
fail() {
  printf 'error: %s\n  hint: %s\n' "$1" "$2" >&2
  exit 3
}

install_packages() {
  local missing=() package
  while read -r package; do
    [[ "$package" == "[tests]" && "$wanted" == programs ]] && break
    [[ -z "$package" || "$package" == [\#[]* ]] && continue
    dpkg-query -W -f='${Status}' "$package" 2>/dev/null | grep -q '^install ok installed$' || missing+=("$package")
  done <"$root/tools/setup/packages.txt"
  if [[ ${#missing[@]} -eq 0 ]]; then
    say "packages: all installed"
    return
  fi
  say "packages: installing ${missing[*]}"
  local sudo=()
  if [[ $(id -u) -ne 0 ]]; then
    command -v sudo >/dev/null || fail "packages are missing and there is no sudo" "as root: apt-get install ${missing[*]}"
    sudo=(sudo)
  fi
  "${sudo[@]}" apt-get update -qq
  "${sudo[@]}" env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "${missing[@]}" >/dev/null
}

torch_in_venv() {
  "$root/.venv/bin/python3" -c "import torch; assert torch.__version__.split('+')[0] == '$torch_version'" 2>/dev/null
}

# Tries the CPU build of LibTorch first, then an installed LibTorch, and last the plain wheel, which has several GB of
# CUDA libraries.
install_torch() {
  if [[ -n "${DYNAMICCL_WITHOUT_TORCH:-}" ]]; then
    say "LibTorch: skipped (DYNAMICCL_WITHOUT_TORCH is set)"
    return
  fi
  if torch_in_venv; then
    say "LibTorch: $torch_version in .venv"
    return
  fi
  [[ -x "$root/.venv/bin/python3" ]] || python3 -m venv "$root/.venv"
  local pip=("$root/.venv/bin/pip" install -q --disable-pip-version-check)
  say "LibTorch: pip install torch==$torch_version+cpu into .venv"
  "${pip[@]}" "torch==$torch_version+cpu" 2>/dev/null && return
  "${pip[@]}" --timeout 10 --retries 0 --index-url https://download.pytorch.org/whl/cpu "torch==$torch_version" 2>/dev/null && return
  if [[ -n "${CMAKE_PREFIX_PATH:-}" ]] && compgen -G "${CMAKE_PREFIX_PATH%%:*}/**/TorchConfig.cmake" >/dev/null; then
    say "LibTorch: the one in CMAKE_PREFIX_PATH"
    return
  fi
  say "LibTorch: no CPU build to be had, taking the plain wheel"
  "${pip[@]}" "torch==$torch_version" ||
    fail "LibTorch $torch_version could not be installed" "set CMAKE_PREFIX_PATH to a LibTorch, or DYNAMICCL_WITHOUT_TORCH=1"
}

# PyTorch's own distributed tests need them, and tests of the torch backend that are skipped without them.
install_test_modules() {
  [[ "$wanted" == programs || -n "${DYNAMICCL_WITHOUT_TORCH:-}" || ! -x "$root/.venv/bin/python3" ]] && return
  "$root/.venv/bin/python3" -c "import expecttest, numpy" 2>/dev/null && return
  say "tests of the torch backend: pip install numpy expecttest into .venv"
  "$root/.venv/bin/pip" install -q --disable-pip-version-check numpy expecttest ||
    say "numpy and expecttest could not be installed: tests that need them are skipped"
}

command -v apt-get >/dev/null || fail "this script knows Debian's apt only" "install the equivalents of tools/setup/packages.txt"
install_packages
install_torch
install_test_modules
