// SPDX-License-Identifier: Apache-2.0
#include "plugin/runtime/issuing_thread.h"

#include <cstring>

namespace dynamiccl {
namespace {

thread_local IssuingThread t_issuing;

}  // namespace

[[gnu::hot]] IssuingThread& IssuingThread::Current() noexcept {
  return t_issuing;
}

[[gnu::hot]] IssuedGroup* IssuingThread::GroupOn(const ControlToken& token) noexcept {
  for (IssuedGroup& group : groups) {
    if (std::memcmp(group.communicator->identity.token.data(), token.data(), sizeof(token)) == 0)
      return &group;
  }
  return nullptr;
}

IssuedEvent IssuingThread::EventOf(int rank, Collective collective, uint64_t api_bytes) noexcept {
  for (PendingCall& pending : calls) {
    const CollectiveCall& call = pending.issued.call;
    if (pending.timed == nullptr && pending.timing_reason != TimingReason::kNotTimed &&
        call.collective == collective && pending.api_bytes == api_bytes &&
        pending.communicator->identity.info.rank == rank)
      return {&pending.timed, call.communicator, call.bytes, call.call_number,
              &pending.communicator->switching.times};
  }
  return {};
}

}  // namespace dynamiccl
