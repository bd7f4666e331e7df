// SPDX-License-Identifier: Apache-2.0
// The time-out of a communicator, from the user's setting and from the program's request.
#include "src/hostccl/timeout.h"

#include <algorithm>
#include <atomic>
#include <cstdlib>

#include "src/base/settings.h"

#pragma GCC visibility push(default)
#include "src/nccl_abi/host_timeout.h"
#pragma GCC visibility pop

namespace dynamiccl::hostccl {
namespace {

// The time-out that the program requested, in milliseconds; 0 for none. It is not an environment variable,
// because child processes inherit those, and changing one while other threads read it is undefined behaviour.
std::atomic<int64_t> asked_for_ms{0};

}  // namespace

Result<int64_t> TimeoutMs() {
  DYNAMICCL_TRY(const int64_t set_ms, IntegerSetting(Setting::kHostcclTimeoutMs));
  if (set_ms < 1) {
    return MakeError(ErrorKind::kInvalidArgument, "HOSTCCL_TIMEOUT_MS={} is not a positive number", set_ms);
  }
  return UserSetsTimeout() ? set_ms : std::max(set_ms, RaisedTimeoutMs());
}

bool UserSetsTimeout() {
  return ::secure_getenv(Row(Setting::kHostcclTimeoutMs).name) != nullptr;
}

int64_t RaisedTimeoutMs() {
  return asked_for_ms.load(std::memory_order_relaxed);
}

}  // namespace dynamiccl::hostccl

// If there are several requests, the largest one counts. Any thread may call this at any time.
ncclResult_t hostcclRaiseTimeout(int64_t milliseconds) {
  if (milliseconds < 1) return ncclInvalidArgument;
  auto& longest = dynamiccl::hostccl::asked_for_ms;
  int64_t seen = longest.load();
  while (seen < milliseconds && !longest.compare_exchange_weak(seen, milliseconds)) {
  }
  return ncclSuccess;
}
