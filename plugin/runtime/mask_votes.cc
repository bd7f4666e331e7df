// SPDX-License-Identifier: Apache-2.0
#include "plugin/runtime/mask_votes.h"

#include <algorithm>

#include "plugin/border/first_time.h"
#include "src/base/log.h"

namespace dynamiccl {
namespace {

// Some communicators attest at their calls instead of in NCCL's init. After this many situations have timed
// out, the ranks of such a communicator stop asking. Situations time out if one rank initialised the
// communicator alone and others initialised several at once: only the others attest at their calls.
// kMaxLateSituations is the limit for the whole job.
constexpr int kMaxUnanswered = 5;

// Sends each mask as a pledge about its situation. Used on the thread on which NCCL asks the tuner.
class MaskVotes final : public MaskExchange {
 public:
  MaskVotes(RendezvousPoints& rendezvous, std::shared_ptr<const Communicator> communicator,
            std::optional<AttestedValues> attested)
      : rendezvous_(rendezvous), communicator_(std::move(communicator)), attested_(std::move(attested)) {}

  std::shared_ptr<PendingVerdict> Pledge(const MaskPledge& pledge) override {
    const CommunicatorIdentity& of = communicator_->identity;
    PledgeMessage message{of.rendezvous.root,
                          SituationToken(of.token, pledge.situation, pledge.attempt),
                          of.member,
                          of.info.n_ranks,
                          {},
                          attested_.value_or(AttestedValues{}),
                          VoteKind::kSituation};
    // The leader of a child is perhaps not one of the child's ranks, because it is a rank of the original
    // communicator.
    if (attested_ && of.token == of.rendezvous.root) message.kind = VoteKind::kSituationWithLeader;
    message.of_leader = rendezvous_.IsLocal(of.rendezvous);
    message.values.place = fmt::format("call {}", pledge.call_number);
    message.values.mask = Describe(pledge.mask);
    // A pledge that is sent after this time is too late for the other ranks.
    const int leader_ms = std::max(1, rendezvous_.attest_timeout_ms() / kMaxLateSituations);
    return rendezvous_.pledge_sender().Send(of.rendezvous, std::move(message), leader_ms,
                                            {communicator_, &communicator_->gone},
                                            of.token == of.rendezvous.root);
  }

 private:
  RendezvousPoints& rendezvous_;
  const std::shared_ptr<const Communicator> communicator_;
  const std::optional<AttestedValues> attested_;
};

// Logs a refusal once for each reason, not for each size. A time-out is logged as information only, because a
// late rank is asked again.
void LogRefusal(int rank, const CallSituation& situation, const Verdict& verdict) {
  if (!FirstTime(verdict.reason)) return;
  Log(verdict.timed_out ? LogLevel::kInfo : LogLevel::kWarn,
      "rank {} keeps NCCL's choice for {} of {} bytes: {}", rank, Name(situation.collective),
      Name(situation.size_class), verdict.reason);
}

}  // namespace

std::unique_ptr<MaskAgreement> NewMaskAgreement(RendezvousPoints& rendezvous,
                                                std::shared_ptr<const Communicator> communicator,
                                                std::optional<AttestedValues> attested) {
  if (!communicator->identity.rendezvous.valid()) return nullptr;
  const int rank = communicator->identity.member;
  const int max_unanswered = attested ? kMaxUnanswered : 0;
  return std::make_unique<MaskAgreement>(
      std::make_unique<MaskVotes>(rendezvous, std::move(communicator), std::move(attested)),
      [rank](const CallSituation& situation, const Verdict& verdict) {
        LogRefusal(rank, situation, verdict);
      },
      max_unanswered);
}

// Ring and, for AllReduce, Tree have kernels in LL and Simple for every device and link. LL128 depends on
// links and devices; the other algorithms depend on switches and the network.
ConfigMask OfferedEverywhere(Collective collective) {
  ConfigMask mask;
  for (const Algorithm algorithm : {Algorithm::kRing, Algorithm::kTree}) {
    for (const Protocol protocol : {Protocol::kLL, Protocol::kSimple})
      mask.set(ConfigIndex(algorithm, protocol));
  }
  return mask & NcclConfigs(collective);
}

}  // namespace dynamiccl
