// SPDX-License-Identifier: Apache-2.0
// The leader's end of switching tables (docs/switching.md), for every communicator whose ranks meet at this
// process: which ranks have joined, what the leader's machine sends them, and where new tables come from.
// They come from the policy file when it changes, from guards, and from offers of other threads.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "plugin/runtime/changed_policy.h"
#include "plugin/runtime/table_guard.h"
#include "plugin/runtime/table_offer.h"
#include "src/decision/control_messages.h"
#include "src/decision/digest_comparison.h"
#include "src/decision/switching/switch_leader.h"

namespace dynamiccl {

// Owned by the control server and used on its thread, but for the functions that say "any thread". A message
// that is damaged, or that a rank may not send, ends its connection; the rank comes again.
class SwitchLeadership {
 public:
  // Policies by their digests, for guards.
  using PolicyOf = std::function<std::shared_ptr<const Policy>(const Sha256Digest&)>;
  // Calls that have begun on this process's rank of a communicator; empty without such a rank.
  using OwnCalls = std::function<std::optional<uint64_t>(const ControlToken&)>;

  SwitchLeadership(std::unique_ptr<PolicyWatch> watch, OwnCalls own_calls, PolicyOf policy_of = {},
                   std::string site_store_path = {})
      : watch_(std::move(watch)),
        own_calls_(std::move(own_calls)),
        policy_of_(std::move(policy_of)),
        site_store_path_(std::move(site_store_path)) {}

  // Any thread. The next Tick asks the ranks to use the table; a newer offer that is not less urgent replaces
  // it until then.
  void Offer(const ControlToken& communicator, TableOffer offer);
  // Any thread. Has the guard watch its communicator and propose tables, once all ranks have joined.
  void Guard(std::shared_ptr<TableGuard> guard);
  // Adds what the guards have learnt to the site store. Waits a fifth of a second for each at most; what
  // cannot be saved is logged once.
  void SaveLearnt();

  // A rank joined on this connection. False when the connection is to be closed.
  bool Join(int fd, const JoinMessage& join, const ControlSecret& secret);
  // A message on a connection that has joined. False when the connection is to be closed.
  bool HandleMessage(int fd, std::span<const std::byte> message);
  // The connection ended.
  void ConnectionLost(int fd);
  // Looks at the policy file, runs the guards, and advances the leaders' machines.
  void Tick(int64_t now_ns);
  // Milliseconds until Tick is due; -1: never.
  int NextTickMs() const;

 private:
  // A version that the ranks were asked to use.
  struct AskedVersion {
    TableContents table;
    std::function<void(const SwitchOutcome&)> ended;  // may be empty
  };
  // The ranks of one communicator, as far as they have joined.
  struct Communicator {
    Communicator(int ranks, const Sha256Digest& first_policy)
        : leader(ranks), n_ranks(static_cast<size_t>(ranks)), policy(first_policy), decided(ranks) {}
    SwitchLeader leader;
    ControlSecret secret{};
    std::vector<int> fds;      // by order of joining: how the machine numbers them
    std::vector<int> members;  // likewise, as the ranks call themselves
    const size_t n_ranks;
    uint32_t version = 1;  // the last that the machine was asked for
    // Of each version that has not ended: an attempt may still be about an earlier one.
    std::map<uint32_t, AskedVersion> asked;
    std::shared_ptr<TableGuard> guard;   // null: nobody watches what the table costs
    std::optional<uint64_t> sent_until;  // to the ranks that tell times
    Sha256Digest policy{};               // of the last committed version that has one
    Sha256Digest watched{};  // the changed file that was asked for; zeros when it has to be asked for again
    DigestComparison decided;
    bool diverged = false;       // NCCL's choice for the rest of the job
    int64_t offer_again_ns = 0;  // a file that some rank did not have is not offered again before
    // False when the communicator is complete without this rank, or of another size.
    bool AddRank(int fd, const JoinMessage& join);
    // Descriptor of a member's connection; -1: none.
    int ConnectionOf(int member) const;
    bool nobody_connected() const;
    bool complete() const { return fds.size() == n_ranks; }
    // Asks the machine for a new version. False when something more urgent waits, a rank is lost, or ranks
    // have decided differently.
    bool Request(SwitchReason reason, AskedVersion asked_version);
    // The version ended, and with it all before it: tells those who asked for them.
    void End(const SwitchOutcome& outcome);
  };

  // Forgets communicators that this process has left and that no rank is connected for.
  void RemoveEnded();
  // Gives guards to their communicators as these become complete.
  void AttachGuards();
  // Passes on what other threads have offered. False when there was nothing.
  bool RequestOffers();
  bool HandleDigest(Communicator& communicator, int rank, std::span<const std::byte> message,
                    const ControlToken& token);
  // Compares what the ranks decided. Once they have decided differently, no table is used on the communicator
  // any more.
  void CheckForDivergence(Communicator& communicator, int64_t now_ns);
  bool RequestOffer(const ControlToken& token, TableOffer offer);
  bool HandleTimes(const ControlToken& token, int rank, std::span<const std::byte> message);
  void RunGuard(const ControlToken& token, Communicator& communicator, int64_t now_ns);
  // Tells ranks what they are to time, where that changed.
  void SendTiming(const ControlToken& token, Communicator& communicator);
  void Save(TableGuard& guard, int64_t patience_ns);
  void AskForChangedFile(Communicator& communicator, int64_t now_ns);
  void Send(const Communicator& communicator, const ControlToken& token, const SwitchSends& sends);
  // Draws the consequences of an attempt that has ended: for the guard, for who asked for it, and for the
  // log.
  void FinishAttempt(Communicator& communicator);
  uint64_t CallsOf(const ControlToken& token) const { return own_calls_(token).value_or(0); }

  const std::unique_ptr<PolicyWatch> watch_;
  const OwnCalls own_calls_;
  const PolicyOf policy_of_;
  const std::string site_store_path_;  // empty: nothing is kept
  std::map<ControlToken, Communicator> communicators_;
  std::map<int, ControlToken> by_fd_;
  std::optional<Sha256Digest> latest_;  // what the policy file became
  int64_t next_look_ns_ = 0;
  int64_t next_tick_ns_ = 0;  // when the machines go on
  int64_t next_save_ns_ = 0;
  bool warned_unsaved_ = false;
  std::mutex mutex_;                                 // guards what follows
  std::vector<std::shared_ptr<TableGuard>> guards_;  // of communicators whose ranks have not all joined
  std::vector<std::pair<ControlToken, TableOffer>> offers_;
};

}  // namespace dynamiccl
