// SPDX-License-Identifier: Apache-2.0
#include "plugin/runtime/mask_meetings.h"

#include <algorithm>

#include "src/base/log.h"

namespace dynamiccl {
namespace {

// Where a rank initialised the communicator alone and others several at once, these attest at their calls and
// that one never does. A job has kMaxLateSituations in all.
constexpr int kMaxUnanswered = 5;

class MaskMeetings final : public MaskExchange {
 public:
  MaskMeetings(ProcessRuntime& runtime, std::shared_ptr<const Communicator> communicator,
               std::optional<AttestedValues> attested)
      : runtime_(runtime), communicator_(std::move(communicator)), attested_(std::move(attested)) {}

  std::shared_ptr<PendingVerdict> Pledge(const MaskPledge& pledge) override {
    const Communicator& of = *communicator_;
    PledgeMessage message{of.meeting.root,
                          SituationToken(of.token, pledge.situation, pledge.attempt),
                          of.member,
                          of.info.n_ranks,
                          {},
                          attested_.value_or(AttestedValues{}),
                          MeetingAbout::kSituation};
    // Of children it is a rank of the communicator that they came from.
    if (attested_ && of.token == of.meeting.root) message.about = MeetingAbout::kSituationWithLeader;
    message.of_leader = runtime_.Leads(of.meeting);
    message.values.place = fmt::format("call {}", pledge.call_number);
    message.values.mask = Describe(pledge.mask);
    // A pledge that comes later than this is too late for the others.
    const int reach_ms = std::max(1, runtime_.settings().attest_timeout_ms / kMaxLateSituations);
    return runtime_.pledge_sender().Send(of.meeting, std::move(message), reach_ms,
                                         {communicator_, &communicator_->gone}, of.token == of.meeting.root);
  }

 private:
  ProcessRuntime& runtime_;
  const std::shared_ptr<const Communicator> communicator_;
  const std::optional<AttestedValues> attested_;
};

// A rank that is late is asked again, so only the others are the user's concern. Said once for each
// difference, not for each size.
void Say(ProcessRuntime& runtime, int rank, const CallSituation& situation, const Verdict& verdict) {
  if (!runtime.FirstTime(verdict.reason)) return;
  Log(verdict.timed_out ? LogLevel::kInfo : LogLevel::kWarn,
      "rank {} keeps NCCL's choice for {} of {} bytes: {}", rank, Name(situation.collective),
      Name(situation.size_class), verdict.reason);
}

}  // namespace

std::unique_ptr<MaskAgreement> NewMaskAgreement(ProcessRuntime& runtime,
                                                std::shared_ptr<const Communicator> communicator,
                                                std::optional<AttestedValues> attested) {
  if (!communicator->meeting.valid()) return nullptr;
  const int rank = communicator->member;
  const int most_unanswered = attested ? kMaxUnanswered : 0;
  return std::make_unique<MaskAgreement>(
      std::make_unique<MaskMeetings>(runtime, std::move(communicator), std::move(attested)),
      [&runtime, rank](const CallSituation& situation, const Verdict& verdict) {
        Say(runtime, rank, situation, verdict);
      },
      most_unanswered);
}

// Ring and, for AllReduce, Tree have kernels in LL and Simple for every device and link. LL128 depends on
// links and devices, the other algorithms on switches and the network.
ConfigMask OfferedEverywhere(Collective collective) {
  ConfigMask mask;
  for (const Algorithm algorithm : {Algorithm::kRing, Algorithm::kTree}) {
    for (const Protocol protocol : {Protocol::kLL, Protocol::kSimple})
      mask.set(ConfigIndex(algorithm, protocol));
  }
  return mask & NcclConfigs(collective);
}

}  // namespace dynamiccl
