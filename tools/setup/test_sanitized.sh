#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Builds the core with sanitizers and runs the tests that are for them: no finding is the pass. Without LibTorch, about
# 20 minutes each on two cores without a compiler cache.
#
#   tools/setup/test_sanitized.sh asan [ctest's arguments]   AddressSanitizer and UBSan: the fast tests, stressed programs
#   tools/setup/test_sanitized.sh asan-jobs [...]            the same, of what runs inside jobs: threads and stressed programs
#   tools/setup/test_sanitized.sh tsan [ctest's arguments]   ThreadSanitizer: the tests with several threads, these too
#
# DYNAMICCL_JOBS: how many compilers at once (default: the cores).
set -euo pipefail

root="$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)"
preset="${1:-}"
case "$preset" in
  asan) labels=(fast stressed) ;;
  asan-jobs) labels=(threads stressed) preset=asan ;;
  tsan) labels=(threads) ;;
  *)
    printf 'error: which sanitizers? "%s" is none\n  hint: %s asan|asan-jobs|tsan [arguments of ctest]\n' "$preset" "$0" >&2
    exit 2
    ;;
esac
shift

# A finding ends the process: the test fails. A preloaded object comes before the sanitizer's library.
export ASAN_OPTIONS="${ASAN_OPTIONS:-detect_stack_use_after_return=1:strict_string_checks=1:verify_asan_link_order=0}"
export UBSAN_OPTIONS="${UBSAN_OPTIONS:-print_stacktrace=1}"
export TSAN_OPTIONS="${TSAN_OPTIONS:-halt_on_error=1:second_deadlock_stack=1:die_after_fork=0}"

build="$root/build/$preset"
printf '==> building the %s tests in %s\n' "${labels[*]}" "$build"
cmake -S "$root" --preset "$preset" -DDYNAMICCL_BUILD_STUDIES=ON -DDYNAMICCL_BUILD_BENCH=ON >/dev/null
cmake --build "$build" --parallel "${DYNAMICCL_JOBS:-$(nproc)}" --target "${labels[@]/#/tests_}"
printf '==> testing\n'
exec ctest --test-dir "$build" --output-on-failure --no-tests=error -L "$(IFS='|' && printf %s "${labels[*]}")" -LE 'slow|torch|real_nccl' "$@"
