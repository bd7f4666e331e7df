#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Builds the core with a sanitizer, without LibTorch, and runs the tests that are meant for it. The run passes if the
# sanitizer finds nothing. Each of the three runs takes about 20 minutes on two cores without a compiler cache.
#
#   tools/setup/test_sanitized.sh asan [ctest's arguments]   AddressSanitizer and UBSan: the fast tests, stressed programs
#   tools/setup/test_sanitized.sh asan-jobs [...]            the same for code inside jobs: tests with threads, stress
#   tools/setup/test_sanitized.sh tsan [ctest's arguments]   ThreadSanitizer: the tests with several threads
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

# A finding ends the process, so its test fails. verify_asan_link_order=0 allows a preloaded object to come before the
# sanitizer's library.
export ASAN_OPTIONS="${ASAN_OPTIONS:-detect_stack_use_after_return=1:strict_string_checks=1:verify_asan_link_order=0}"
export UBSAN_OPTIONS="${UBSAN_OPTIONS:-print_stacktrace=1}"
export TSAN_OPTIONS="${TSAN_OPTIONS:-halt_on_error=1:second_deadlock_stack=1:die_after_fork=0}"

build="$root/build/$preset"
printf '==> building the %s tests in %s\n' "${labels[*]}" "$build"
cmake -S "$root" --preset "$preset" -DDYNAMICCL_BUILD_STUDIES=ON -DDYNAMICCL_BUILD_BENCH=ON >/dev/null
cmake --build "$build" --parallel "${DYNAMICCL_JOBS:-$(nproc)}" --target "${labels[@]/#/tests_}"
printf '==> testing\n'
exec ctest --test-dir "$build" --output-on-failure --no-tests=error -L "$(IFS='|' && printf %s "${labels[*]}")" -LE 'slow|torch|real_nccl' "$@"
