// SPDX-License-Identifier: Apache-2.0
// The leader's end of switching tables (docs/switching.md), for every communicator whose ranks meet at this
// process. It knows which ranks have joined, sends the messages of the leader's state machine (SwitchLeader),
// and collects new tables: from the policy file when it changes, from guards, and from offers of other
// threads. Live values (docs/agree.md) come from ranks, from a watched file and from this process itself.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "plugin/runtime/store_writer.h"
#include "plugin/runtime/table_guard.h"
#include "plugin/runtime/table_offer.h"
#include "plugin/runtime/watched_files.h"
#include "src/decision/control_messages.h"
#include "src/decision/digest_comparison.h"
#include "src/decision/switching/switch_leader.h"

namespace dynamiccl {

// Owned by the control server and used on its thread, except for the functions that say "any thread". A
// damaged or forbidden message ends its connection; the rank then connects again.
class SwitchLeadership {
 public:
  // Returns the number of calls that have begun on this process's rank of a communicator; nothing without
  // such a rank.
  using OwnCalls = std::function<std::optional<uint64_t>(const ControlToken&)>;

  // `first`: the policy in use at the start, for guards; null without one.
  SwitchLeadership(std::unique_ptr<PolicyWatch> watch, OwnCalls own_calls,
                   std::shared_ptr<const Policy> first = {}, std::string site_store_path = {},
                   std::string values_path = {}, std::function<AgreedValues()> own_values = {})
      : files_(std::move(watch), std::move(values_path)),
        own_calls_(std::move(own_calls)),
        first_(std::move(first)),
        store_(std::move(site_store_path)),
        own_values_(std::move(own_values)) {}

  // Calls `changed` on another thread when a watched file has changed and Tick is to be called. Call it
  // before all other functions.
  void OnChangedFile(std::function<void()> changed) { files_.OnChange(std::move(changed)); }
  // Any thread. The next Tick asks the ranks to use the table. Until that Tick a newer offer replaces this
  // one, unless the newer one is less urgent.
  void Offer(const ControlToken& communicator, TableOffer offer);
  // Any thread. Lets the guard watch its communicator and propose tables, once all ranks have joined.
  void Guard(std::shared_ptr<TableGuard> guard);
  // Adds the guards' results to the site store, at the end of the process. Waits at most two seconds; a
  // failure to save is logged once.
  void SaveResults();

  // Adds the rank that joins on this connection. Returns false if the connection is to be closed.
  bool Join(int fd, const JoinMessage& join, const ControlSecret& secret);
  // Handles a message on a joined connection. Returns false if the connection is to be closed.
  bool HandleMessage(int fd, std::span<const std::byte> message);
  // Removes the rank of a connection that has ended.
  void ConnectionLost(int fd);
  // Reads changed files, runs the guards, and advances the state machines of the communicators' leaders.
  void Tick(int64_t now_ns);
  // Milliseconds until Tick is due; -1: never.
  int NextTickMs() const;

 private:
  // A version that the ranks were asked to use, and the function that is called with the outcome.
  struct AskedVersion {
    TableContents table;
    std::function<void(const SwitchOutcome&)> ended;  // may be empty
    std::shared_ptr<const Policy> policy;             // policy of the table, for the guard; may be null
    bool keeps_policy = false;  // the table goes with the policy that the ranks use, whichever it is
  };
  // One communicator and those of its ranks that have joined.
  struct Communicator {
    Communicator(int ranks, const Sha256Digest& first_digest, std::shared_ptr<const Policy> first_policy)
        : leader(ranks),
          n_ranks(static_cast<size_t>(ranks)),
          digest(first_digest),
          policy(std::move(first_policy)),
          decided(ranks) {}
    SwitchLeader leader;
    ControlSecret secret{};
    std::vector<int> fds;      // in the order of joining, which is the numbering in SwitchLeader
    std::vector<int> members;  // in the same order: each rank's own number
    const size_t n_ranks;
    uint32_t version = 1;  // the last version that was requested from SwitchLeader
    // The requested versions without an outcome, by version number. There may be several, because the present
    // attempt may be about an earlier one.
    std::map<uint32_t, AskedVersion> asked;
    std::shared_ptr<TableGuard> guard;   // null: nobody watches the cost of the table
    std::optional<uint64_t> sent_until;  // the last order sent to the ranks that report times
    // The policy of the last committed version that has one: its digest, and the policy itself if known.
    Sha256Digest digest;
    std::shared_ptr<const Policy> policy;
    Sha256Digest watched{};  // digest of the changed file that was requested; zeros: request it (again)
    DigestComparison decided;
    bool diverged = false;       // ranks decided differently: NCCL's choice for the rest of the job
    int64_t offer_again_ns = 0;  // a file that some rank did not have is not offered again before this time
    // The live values of the last committed version, and those that somebody wants in their place.
    AgreedValues values;
    AgreedValues wanted_values;
    bool refused_values = false;  // more than kMaxAgreedValues were wanted, which was logged
    int64_t values_from_ns = 0;   // the next version for values is not requested before this time
    // Returns false if the communicator is complete without this rank, or has another size.
    bool AddRank(int fd, const JoinMessage& join);
    // Returns the descriptor of a member's connection; -1: none.
    int ConnectionOf(int member) const;
    bool nobody_connected() const;
    bool complete() const { return fds.size() == n_ranks; }
    bool wants_values() const { return complete() && !leader.lacks_rank() && wanted_values != values; }
    // True while something is to be asked or answered soon.
    bool busy() const { return leader.busy() || wants_values(); }
    // Adds a value that a rank, a file or this process wants. If kMaxAgreedValues names are wanted already, a
    // value with a further name is ignored, which is logged once.
    void Want(const ProposedValue& proposed);
    // Requests a new version from SwitchLeader. Returns false if something more urgent waits, a rank is lost,
    // or ranks have decided differently.
    bool Request(SwitchReason reason, AskedVersion asked_version);
    // Calls `ended` of this version with the outcome, and `ended` of all earlier versions with kSuperseded.
    // Removes these versions from `asked`.
    void End(const SwitchOutcome& outcome);
    // Notes that the committed version brought another policy: the guard starts again with the new policy,
    // and offers that were requested meanwhile keep the new policy.
    void UsePolicyOf(uint32_t committed);
  };

  // Removes communicators that this process has left and for which no rank is connected.
  void RemoveEnded();
  // Moves guards to their communicators when these become complete.
  void AttachGuards();
  // Requests a switch for each table that other threads have offered. Returns false if there were no offers.
  bool RequestOffers();
  bool HandleDigest(Communicator& communicator, int rank, std::span<const std::byte> message,
                    const ControlToken& token);
  // Compares the decisions of the ranks. If they have decided differently, the communicator uses no table any
  // more.
  void CheckForDivergence(Communicator& communicator, int64_t now_ns);
  bool RequestOffer(const ControlToken& token, TableOffer offer);
  bool HandleProposal(const ControlToken& token, std::span<const std::byte> message);
  // Reads the watched files that changed, and this process's own values.
  void TakeChanges(int64_t now_ns);
  void WantOnAll(const ProposedValue& proposed);
  // Requests a version with the values that are wanted, once nothing else is under way.
  void AskForValues(Communicator& communicator, int64_t now_ns);
  bool HandleTimes(const ControlToken& token, int rank, std::span<const std::byte> message);
  void RunGuard(const ControlToken& token, Communicator& communicator, int64_t now_ns);
  // Sends changed orders for timing to the ranks.
  void SendTiming(const ControlToken& token, Communicator& communicator);
  // Begins to add the results of all guards to the site store. Returns false if a write is under way.
  bool BeginSaving();
  void AskForChangedFile(Communicator& communicator, int64_t now_ns);
  void Send(const Communicator& communicator, const ControlToken& token, const SwitchSends& sends);
  // Applies the result of an attempt that has ended: to the guard, to the requester, and to the log.
  void FinishAttempt(Communicator& communicator);
  uint64_t CallsOf(const ControlToken& token) const { return own_calls_(token).value_or(0); }

  WatchedFiles files_;
  const OwnCalls own_calls_;
  const std::shared_ptr<const Policy> first_;
  StoreWriter store_;
  AgreedValues values_of_file_;  // as the file states them; a removed value keeps its last number
  const std::function<AgreedValues()> own_values_;  // may be empty
  AgreedValues known_own_values_;                   // the latest answer of own_values_
  std::map<ControlToken, Communicator> communicators_;
  std::map<int, ControlToken> by_fd_;
  // Guards of communicators that have ended, until their results are written.
  std::vector<std::shared_ptr<TableGuard>> ended_guards_;
  std::shared_ptr<const Policy> latest_;  // the present policy file, once it has changed
  int64_t next_look_ns_ = 0;
  int64_t next_tick_ns_ = 0;  // when the state machines are advanced next
  int64_t next_save_ns_ = 0;
  std::mutex mutex_;  // guards the members below
  // Guards of communicators whose ranks have not all joined.
  std::vector<std::shared_ptr<TableGuard>> guards_;
  std::vector<std::pair<ControlToken, TableOffer>> offers_;
};

}  // namespace dynamiccl
