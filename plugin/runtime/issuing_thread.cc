// SPDX-License-Identifier: Apache-2.0
#include "plugin/runtime/issuing_thread.h"

#include <cstring>

namespace dynamiccl {
namespace {

// Holds the thread's object, which is never destroyed: handlers at the end of the process, and destructors of
// the program's own thread variables, may still issue calls. When the thread ends, its memory is freed.
class Holder {
 public:
  Holder() : issuing_() {}
  ~Holder() {
    issuing_.calls = std::vector<PendingCall>();
    issuing_.groups = std::vector<IssuedGroup>();
    issuing_.pending_communicators = std::vector<PendingCommunicator>();
  }
  IssuingThread& issuing() { return issuing_; }

 private:
  union {
    IssuingThread issuing_;
  };
};

thread_local Holder t_holder;

}  // namespace

[[gnu::hot]] IssuingThread& IssuingThread::Current() noexcept {
  return t_holder.issuing();
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
