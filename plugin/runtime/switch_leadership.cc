// SPDX-License-Identifier: Apache-2.0
#include "plugin/runtime/switch_leadership.h"

#include <algorithm>
#include <utility>

#include "plugin/border/first_time.h"
#include "plugin/runtime/socket.h"
#include "src/base/clock.h"
#include "src/base/job_fail_point.h"
#include "src/base/log.h"

namespace dynamiccl {
namespace {

// Interval between two checks of this process's own values.
constexpr int64_t kLookNs = 200'000'000;
// Periods of Tick, in milliseconds. kBusyTickMs, while an attempt is under way, is far below the second after
// which the attempt is called off.
constexpr int kBusyTickMs = 1;
constexpr int kQuietTickMs = 100;
// A policy that some rank does not have yet is offered again after 5 s: a shared file system may take seconds
// to show a new file everywhere.
constexpr int64_t kOfferAgainNs = 5'000'000'000;
constexpr int64_t kSecondNs = 1'000'000'000;
// Nanoseconds between two versions that change live values. Between the two, the adoptions of a guard get a
// turn.
constexpr int64_t kValuesSpacingNs = 50'000'000;
// The guards' results are saved once a minute, for jobs that end by being killed.
constexpr int64_t kSaveEveryNs = 60 * kSecondNs;
// At the end of the process, saving waits this long for a write under way, and then again this long for its
// own write.
constexpr int64_t kSaveAtEndNs = kSecondNs;
// While the store cannot be written, the results of at most this many ended communicators are kept for a
// later attempt.
constexpr size_t kMaxEndedGuards = 64;

// Names the table or the live values of a version in log lines.
std::string NameOf(const TableContents& table) {
  if (!table.values) return table.leaves_nccl_alone() ? "NCCL's choice, table" : "table";
  std::string text;
  for (const auto& [name, value] : *table.values) text += fmt::format("{}={}, ", name, value);
  return text + "version";
}

}  // namespace

bool SwitchLeadership::Communicator::AddRank(int fd, const JoinMessage& join) {
  if (n_ranks != static_cast<size_t>(join.n_ranks)) return false;
  const auto known = std::find(members.begin(), members.end(), join.member);
  if (known == members.end()) {
    if (complete()) return false;
    members.push_back(join.member);
    fds.push_back(fd);
    return true;
  }
  // The rank's connection broke, and the same process has connected again. The process still knows what it
  // has pledged.
  fds[static_cast<size_t>(known - members.begin())] = fd;
  leader.RegainRank(static_cast<int>(known - members.begin()));
  sent_until.reset();  // the rank may have missed an order
  return true;
}

int SwitchLeadership::Communicator::ConnectionOf(int member) const {
  const auto known = std::find(members.begin(), members.end(), member);
  return known == members.end() ? -1 : fds[static_cast<size_t>(known - members.begin())];
}

bool SwitchLeadership::Communicator::nobody_connected() const {
  return std::all_of(fds.begin(), fds.end(), [](int each) { return each < 0; });
}

bool SwitchLeadership::Communicator::Request(SwitchReason reason, AskedVersion asked_version) {
  if (diverged || !leader.Request({reason, version + 1})) return false;
  asked[++version] = std::move(asked_version);
  return true;
}

void SwitchLeadership::Communicator::Want(const ProposedValue& proposed) {
  if (wanted_values.contains(proposed.name) || wanted_values.size() < kMaxAgreedValues) {
    wanted_values[proposed.name] = proposed.value;
  } else if (!std::exchange(refused_values, true)) {
    Log(LogLevel::kWarn, "{} is no value of this job: it has {} already, the most there may be",
        proposed.name, kMaxAgreedValues);
  }
}

void SwitchLeadership::Communicator::End(const SwitchOutcome& outcome) {
  while (!asked.empty() && asked.begin()->first <= outcome.version) {
    const auto ended = asked.extract(asked.begin());
    SwitchOutcome of_this = outcome;
    of_this.version = ended.key();
    if (outcome.rank >= 0) of_this.rank = members[static_cast<size_t>(outcome.rank)];
    if (ended.key() != outcome.version) of_this.end = SwitchOutcome::End::kSuperseded;
    if (ended.mapped().ended) ended.mapped().ended(of_this);
  }
}

void SwitchLeadership::Communicator::UsePolicyOf(uint32_t committed) {
  const AskedVersion& used = asked[committed];
  digest = used.table.policy;
  policy = used.policy;
  if (guard) guard->Restart(policy, committed);
  for (auto later = asked.upper_bound(committed); later != asked.end(); ++later) {
    if (!later->second.keeps_policy) continue;
    later->second.table.policy = digest;
    later->second.policy = policy;
  }
}

void SwitchLeadership::Offer(const ControlToken& communicator, TableOffer offer) {
  const std::lock_guard lock(mutex_);
  offers_.emplace_back(communicator, std::move(offer));
}

bool SwitchLeadership::RequestOffers() {
  std::vector<std::pair<ControlToken, TableOffer>> offers;
  {
    const std::lock_guard lock(mutex_);
    offers.swap(offers_);
  }
  for (auto& [token, offer] : offers) RequestOffer(token, std::move(offer));
  return !offers.empty();
}

// Requests a version for an offer. The version keeps the communicator's present policy, unless the offer
// leaves every call to NCCL.
bool SwitchLeadership::RequestOffer(const ControlToken& token, TableOffer offer) {
  const auto found = communicators_.find(token);
  bool requested =
      found != communicators_.end() && found->second.complete() && offer.plan.size() <= kMaxPlanBytes;
  if (requested) {
    const Communicator& of = found->second;
    AskedVersion asked{{of.digest, std::move(offer.plan)}, offer.ended, of.policy, true};
    if (offer.leaves_nccl_alone) asked = {{}, offer.ended, {}};
    requested = found->second.Request(offer.reason, std::move(asked));
  }
  // An offer that is not requested here has reached no rank. The reason is one of these: not all ranks have
  // joined, one is lost, they decided differently, something more urgent waits, or the plan is too long.
  if (!requested && offer.ended) offer.ended({SwitchOutcome::End::kSuperseded, 0, -1, true});
  return requested;
}

void SwitchLeadership::Guard(std::shared_ptr<TableGuard> guard) {
  const std::lock_guard lock(mutex_);
  guards_.push_back(std::move(guard));
}

void SwitchLeadership::AttachGuards() {
  const std::lock_guard lock(mutex_);
  std::erase_if(guards_, [this](const std::shared_ptr<TableGuard>& guard) {
    const auto found = communicators_.find(guard->communicator());
    if (found == communicators_.end() || !found->second.complete()) return false;
    found->second.guard = guard;
    return true;
  });
}

bool SwitchLeadership::HandleTimes(const ControlToken& token, int rank, std::span<const std::byte> message) {
  Communicator& communicator = communicators_.find(token)->second;
  const auto times = DecodeTimes(message, token, communicator.secret);
  if (!times) return false;
  if (!communicator.guard) return true;
  communicator.guard->AddTimes(ReporterOf(rank, static_cast<int>(communicator.n_ranks)), times->times);
  RunGuard(token, communicator, MonotonicNanoseconds());
  return true;
}

void SwitchLeadership::RunGuard(const ControlToken& token, Communicator& communicator, int64_t now_ns) {
  if (!communicator.guard) return;
  // The leader is to begin with the request at once, so the next Tick is due now.
  if (auto offer = communicator.guard->Tick(now_ns); offer && RequestOffer(token, std::move(*offer)))
    next_tick_ns_ = 0;
  SendTiming(token, communicator);
}

// Sends orders for timing only to the ranks that report times; these are always the same 16 ranks or fewer.
void SwitchLeadership::SendTiming(const ControlToken& token, Communicator& communicator) {
  if (communicator.sent_until == communicator.guard->all_timed_until()) return;
  communicator.sent_until = communicator.guard->all_timed_until();
  for (size_t rank = 0; rank < communicator.n_ranks; ++rank) {
    const bool reports = ReporterOf(static_cast<int>(rank), static_cast<int>(communicator.n_ranks)) >= 0;
    if (!reports || communicator.fds[rank] < 0) continue;
    (void)SendAll(communicator.fds[rank],
                  EncodeTiming({token, reports, *communicator.sent_until}, communicator.secret));
  }
}

void SwitchLeadership::SaveResults() {
  if (store_.Finish(kSaveAtEndNs) && BeginSaving()) store_.Finish(kSaveAtEndNs);
}

bool SwitchLeadership::BeginSaving() {
  const int64_t now_s = RealtimeNanoseconds() / kSecondNs;
  std::erase_if(ended_guards_, [now_s](const auto& guard) { return guard->UnsavedResults(now_s).empty(); });
  std::vector<std::shared_ptr<TableGuard>> guards = ended_guards_;
  for (const auto& [token, communicator] : communicators_) {
    if (communicator.guard) guards.push_back(communicator.guard);
  }
  return store_.Begin(guards);
}

// This process leads only communicators of which it has a rank, because that rank's calls show which call is
// next.
bool SwitchLeadership::Join(int fd, const JoinMessage& join, const ControlSecret& secret) {
  if (!own_calls_(join.communicator)) return false;
  // A rank may notice that its connection broke, and join again, before this process notices.
  const auto known = communicators_.find(join.communicator);
  if (known != communicators_.end()) ConnectionLost(known->second.ConnectionOf(join.member));
  const auto [place, is_new] =
      communicators_.try_emplace(join.communicator, join.n_ranks, files_.first_policy(), first_);
  Communicator& communicator = place->second;
  if (is_new) {
    communicator.wanted_values = values_of_file_;
    communicator.wanted_values.insert(known_own_values_.begin(), known_own_values_.end());
  }
  communicator.secret = secret;
  if (!communicator.AddRank(fd, join)) return false;
  by_fd_[fd] = join.communicator;
  if (communicator.wants_values()) next_tick_ns_ = 0;
  PassJobFailPoint(JobFailPoint::kLeaderJoined);
  return true;
}

bool SwitchLeadership::HandleMessage(int fd, std::span<const std::byte> message) {
  const auto joined = by_fd_.find(fd);
  if (joined == by_fd_.end()) return false;
  const ControlToken token = joined->second;
  Communicator& communicator = communicators_.find(token)->second;
  const auto place = std::find(communicator.fds.begin(), communicator.fds.end(), fd);
  const int rank = static_cast<int>(place - communicator.fds.begin());
  if (KindOf(message) == ControlKind::kDigest) return HandleDigest(communicator, rank, message, token);
  if (KindOf(message) == ControlKind::kTimes) return HandleTimes(token, rank, message);
  if (KindOf(message) == ControlKind::kProposal) return HandleProposal(token, message);
  const auto decoded = DecodeSwitch(message, token, communicator.secret);
  if (!decoded) return false;
  const SwitchMessage& received = decoded->message;
  if (received.kind == SwitchKind::kAsk) {
    Send(communicator, token, communicator.leader.AnswerPeer(rank, received.attempt));
  } else if (received.kind == SwitchKind::kPledge || received.kind == SwitchKind::kRefuse) {
    Send(communicator, token, communicator.leader.HandleAnswer(rank, received, CallsOf(token)));
    FinishAttempt(communicator);
  }
  return true;
}

// If several ranks propose numbers for one name, the last proposal counts.
bool SwitchLeadership::HandleProposal(const ControlToken& token, std::span<const std::byte> message) {
  Communicator& communicator = communicators_.find(token)->second;
  const auto proposal = DecodeProposal(message, token, communicator.secret);
  if (!proposal) return false;
  communicator.Want(proposal->proposed);
  next_tick_ns_ = 0;
  return true;
}

bool SwitchLeadership::HandleDigest(Communicator& communicator, int rank, std::span<const std::byte> message,
                                    const ControlToken& token) {
  const auto digest = DecodeDigest(message, token, communicator.secret);
  if (!digest) return false;
  const int64_t now = MonotonicNanoseconds();
  for (const DigestCheckpoint& checkpoint : digest->checkpoints)
    communicator.decided.AddReport(rank, checkpoint, now);
  return true;
}

void SwitchLeadership::CheckForDivergence(Communicator& communicator, int64_t now_ns) {
  if (communicator.diverged) return;
  const auto divergence = communicator.decided.FindDivergence(now_ns);
  if (!divergence) return;
  const bool possible = communicator.Request(SwitchReason::kRevocation, {});
  Log(LogLevel::kWarn, "on a communicator of {} ranks {}: {}", communicator.n_ranks,
      Describe(*divergence, communicator.members),
      possible ? "all go back to NCCL's choice for the rest of the job" : "and a rank is lost");
  communicator.diverged = true;
  communicator.guard.reset();
}

// Until the rank connects again (AddRank) no further switch is possible, and what was requested is dropped.
void SwitchLeadership::ConnectionLost(int fd) {
  const auto joined = by_fd_.find(fd);
  if (joined == by_fd_.end()) return;
  const ControlToken token = joined->second;
  by_fd_.erase(joined);
  Communicator& communicator = communicators_.find(token)->second;
  const auto place = std::find(communicator.fds.begin(), communicator.fds.end(), fd);
  const int rank = static_cast<int>(place - communicator.fds.begin());
  *place = -1;
  Send(communicator, token, communicator.leader.LoseRank(rank));
  FinishAttempt(communicator);
  communicator.End({SwitchOutcome::End::kRankLost, communicator.version, rank, true});
}

void SwitchLeadership::RemoveEnded() {
  for (auto each = communicators_.begin(); each != communicators_.end();) {
    const ControlToken token = each->first;
    // As long as this process's own rank has the communicator, ranks that have pledged may come again for
    // their verdict.
    if (!each->second.nobody_connected() || own_calls_(token)) {
      ++each;
      continue;
    }
    // A job may be killed before its exit handlers run.
    if (each->second.guard && store_.writes() && ended_guards_.size() < kMaxEndedGuards) {
      ended_guards_.push_back(each->second.guard);
      next_save_ns_ = 0;
    }
    each = communicators_.erase(each);
    const std::lock_guard lock(mutex_);
    std::erase_if(guards_, [&](const auto& guard) { return guard->communicator() == token; });
  }
}

void SwitchLeadership::Tick(int64_t now_ns) {
  if (communicators_.empty() && ended_guards_.empty()) return;
  TakeChanges(now_ns);
  AttachGuards();
  // Tick is called after every message; with hundreds of communicators, visiting all of them each time would
  // take too long.
  if (!RequestOffers() && now_ns < next_tick_ns_) return;
  RemoveEnded();
  for (auto& [token, communicator] : communicators_) {
    if (!communicator.complete()) continue;
    CheckForDivergence(communicator, now_ns);
    AskForChangedFile(communicator, now_ns);
    RunGuard(token, communicator, now_ns);
    AskForValues(communicator, now_ns);
    Send(communicator, token, communicator.leader.Tick(now_ns, CallsOf(token)));
    FinishAttempt(communicator);
  }
  store_.Finish(0);
  if (now_ns >= next_save_ns_) {
    BeginSaving();
    next_save_ns_ = now_ns + (ended_guards_.empty() ? kSaveEveryNs : kSecondNs);
  }
  next_tick_ns_ = now_ns + int64_t{NextTickMs()} * 1'000'000;
}

void SwitchLeadership::TakeChanges(int64_t now_ns) {
  ChangedFiles changed = files_.Take();
  if (changed.policy || !changed.values.empty()) next_tick_ns_ = 0;
  if (changed.policy) latest_ = std::move(changed.policy);
  for (const auto& [name, value] : changed.values) {
    values_of_file_[name] = value;
    WantOnAll({name, value});
  }
  if (!own_values_ || now_ns < next_look_ns_) return;
  next_look_ns_ = now_ns + kLookNs;
  for (const auto& [name, value] : own_values_()) {
    const auto [known, is_new] = known_own_values_.try_emplace(name, value);
    if (!is_new && std::exchange(known->second, value) == value) continue;
    WantOnAll({name, value});
  }
}

void SwitchLeadership::WantOnAll(const ProposedValue& proposed) {
  for (auto& [token, communicator] : communicators_) communicator.Want(proposed);
}

// A version's live values must stay as they are while the version is tried again. So new values are requested
// only once the leader is idle. If a request ends without success, its values are still wanted and are
// requested again.
void SwitchLeadership::AskForValues(Communicator& communicator, int64_t now_ns) {
  const bool waits = communicator.leader.busy() || now_ns < communicator.values_from_ns;
  if (waits || !communicator.wants_values()) return;
  communicator.values_from_ns = now_ns + kValuesSpacingNs;
  // An idle leader refuses a request only if ranks have decided differently. Then no later request can
  // succeed, so the wanted values are dropped.
  if (!communicator.Request(SwitchReason::kOperator, {{{}, {}, communicator.wanted_values}, {}, {}}))
    communicator.wanted_values = communicator.values;
}

// Asks the ranks to use the changed policy file. They are asked again if something more urgent replaced the
// request, and again some seconds later if a rank does not have the same file yet.
void SwitchLeadership::AskForChangedFile(Communicator& communicator, int64_t now_ns) {
  if (!latest_ || communicator.watched == latest_->sha256 || now_ns < communicator.offer_again_ns) return;
  Communicator* const asking = &communicator;
  const auto ended = [asking, file = latest_->sha256](const SwitchOutcome& outcome) {
    if (outcome.end == SwitchOutcome::End::kCommitted) return;
    // Does nothing if a newer file was requested meanwhile.
    if (asking->watched == file) asking->watched = {};
    if (outcome.end != SwitchOutcome::End::kRankCannot) return;
    // It may take weeks until the rank gets the file, and the rank is asked every few seconds.
    if (FirstTime(fmt::format("rank {} lacks policy {}", outcome.rank, ToHex(file))))
      Log(LogLevel::kWarn, "the changed policy is not used yet: rank {} does not have the same file",
          outcome.rank);
    asking->offer_again_ns = MonotonicNanoseconds() + kOfferAgainNs;
  };
  if (communicator.Request(SwitchReason::kOperator, {{latest_->sha256, {}}, ended, latest_}))
    communicator.watched = latest_->sha256;
}

int SwitchLeadership::NextTickMs() const {
  if (communicators_.empty()) return ended_guards_.empty() ? -1 : kQuietTickMs;
  const bool busy = std::any_of(communicators_.begin(), communicators_.end(),
                                [](const auto& each) { return each.second.busy(); });
  return busy ? kBusyTickMs : kQuietTickMs;
}

void SwitchLeadership::Send(const Communicator& communicator, const ControlToken& token,
                            const SwitchSends& sends) {
  for (const SwitchSend& send : sends) {
    if (send.message.kind == SwitchKind::kPrepare) PassJobFailPoint(JobFailPoint::kLeaderPrepare);
    if (send.message.kind == SwitchKind::kVerdict) PassJobFailPoint(JobFailPoint::kLeaderVerdict);
    const auto asked = communicator.asked.find(send.message.version);
    const bool known = asked != communicator.asked.end() && send.message.kind == SwitchKind::kPrepare;
    const TableSwitchMessage table_switch{token, send.message, known ? asked->second.table : TableContents{}};
    const auto bytes = EncodeSwitch(table_switch, communicator.secret);
    for (size_t rank = 0; rank < communicator.fds.size(); ++rank) {
      if (send.to != kAllRanks && send.to != static_cast<int>(rank)) continue;
      // Errors are ignored here, because the server's thread notices the end of a connection that broke.
      if (communicator.fds[rank] >= 0) (void)SendAll(communicator.fds[rank], bytes);
    }
  }
}

void SwitchLeadership::FinishAttempt(Communicator& communicator) {
  const auto outcome = communicator.leader.TakeOutcome();
  if (!outcome) return;
  if (outcome->end == SwitchOutcome::End::kCommitted) {
    PassJobFailPoint(JobFailPoint::kLeaderCommitted);
    const AskedVersion& asked = communicator.asked[outcome->version];
    const TableContents& table = asked.table;
    if (table.values) {
      communicator.values = *table.values;
    } else if (table.leaves_nccl_alone()) {
      communicator.guard.reset();
    } else if (communicator.digest != table.policy) {
      communicator.UsePolicyOf(outcome->version);
    }
    Log(LogLevel::kInfo, "all ranks use {} v{} from an agreed call on", NameOf(table), outcome->version);
  }
  if (outcome->request_ended) communicator.End(*outcome);
}

}  // namespace dynamiccl
