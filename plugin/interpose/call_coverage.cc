// SPDX-License-Identifier: Apache-2.0
#include "plugin/interpose/call_coverage.h"

namespace dynamiccl {
namespace {

constexpr uint8_t BitOf(Collective collective) {
  return static_cast<uint8_t>(1u << static_cast<unsigned>(collective));
}

// Returns a bit for each collective about which NCCL may ask its tuner because of this call. NCCL asks about
// a group of broadcasts from several roots as if the group were an AllGather.
uint8_t QuestionsAbout(Collective collective) {
  const uint8_t own = BitOf(collective);
  return collective == Collective::kBroadcast ? own | BitOf(Collective::kAllGather) : own;
}

// NCCL does not ask a tuner about two kinds of work (src/enqueue.cc, ncclPrepareTasks): collectives of the
// copy engine, of which only AllGather could be tuned, and symmetric kernels.
Coverage CoverageWithoutQuestion(Collective collective, const Communicator& communicator) {
  return collective == Collective::kAllGather && communicator.config.zero_ctas ? Coverage::kCopyEngine
                                                                               : Coverage::kSymmetricKernel;
}

Coverage CoverageByQuestions(const CollectiveCall& call, Mode mode, const IssuedGroup& group) {
  if (!Chooses(mode)) return Coverage::kTunable;
  const Communicator& communicator = *group.communicator;
  if (!communicator.config.blocking || !communicator.claimed.load(std::memory_order_relaxed))
    return Coverage::kUnknown;
  const uint8_t about = QuestionsAbout(call.collective);
  if ((group.marks.asked & about) == 0) return CoverageWithoutQuestion(call.collective, communicator);
  return (group.marks.had_choice & about) == 0 ? Coverage::kSingleConfig : Coverage::kTunable;
}

}  // namespace

// Several reasons may apply to a call. The checks are in such an order that the reason on which a user can
// act is returned.
[[gnu::hot]] Coverage CoverageOf(const PendingCall& pending, Mode mode, const IssuedGroup& group) {
  static const bool pinned = PairsArePinned();
  const CollectiveCall& call = pending.issued.call;
  if (static_cast<int>(call.collective) >= kTunableCollectives) return Coverage::kPointToPoint;
  if (pending.captured) return Coverage::kCaptured;
  if (call.n_ranks == 1) return Coverage::kSingleConfig;
  if (call.bytes == 0) return Coverage::kNotAsked;
  return pinned || pending.configured ? Coverage::kPinned : CoverageByQuestions(call, mode, group);
}

}  // namespace dynamiccl
