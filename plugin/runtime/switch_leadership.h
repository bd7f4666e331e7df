// SPDX-License-Identifier: Apache-2.0
// The leader's end of switching, for every communicator whose ranks meet at this process: who joined, what
// the leader's machine says to them, and the changes of the policy file that it is told to spread. On the
// control server's thread.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <vector>

#include "plugin/runtime/changed_policy.h"
#include "src/decision/control_messages.h"
#include "src/decision/switching/switch_leader.h"

namespace dynamiccl {

// A table version that this process wants all ranks of a communicator to use.
struct TableOffer {
  // kRevocation goes before everything else; adoptions come at most once in kAdoptionSpacingNs.
  SwitchReason reason = SwitchReason::kAdoption;
  bool leaves_nccl_alone = false;  // version 0: NCCL's choice for every call
  std::vector<std::byte> plan;     // else: what the version says beside the policy in use; may be empty
  // Called once, on the control server's thread, unless the communicator ends or loses a rank before: how it
  // ended. From the boundary of a commit on all ranks use it. kSuperseded with version 0: nobody was asked.
  std::function<void(const SwitchOutcome&)> ended;
};

class SwitchLeadership {
 public:
  // Calls that have begun on this process's rank of a communicator; empty without such a rank.
  using OwnCalls = std::function<std::optional<uint64_t>(const ControlToken&)>;

  SwitchLeadership(std::unique_ptr<PolicyWatch> watch, OwnCalls own_calls)
      : watch_(std::move(watch)), own_calls_(std::move(own_calls)) {}

  // Any thread. The next Tick asks for it; a newer offer that is not less urgent replaces it until then.
  void Offer(const ControlToken& communicator, TableOffer offer);

  // A rank joined on this connection. False when the connection is to be closed.
  bool Join(int fd, const JoinMessage& join, const ControlSecret& secret);
  // A message on a connection that has joined. False when the connection is to be closed.
  bool Hear(int fd, std::span<const std::byte> message);
  // The connection ended.
  void Lose(int fd);
  // Looks at the policy file, and lets the machines go on.
  void Tick(int64_t now_ns);
  // Milliseconds until Tick is due; -1: never.
  int NextTickMs() const;

 private:
  struct AskedVersion {
    TableContents table;
    std::function<void(const SwitchOutcome&)> ended;  // may be empty
  };
  struct Communicator {
    Communicator(int ranks, const Sha256Digest& first_policy)
        : leader(ranks), n_ranks(static_cast<size_t>(ranks)), policy(first_policy) {}
    SwitchLeader leader;
    ControlSecret secret{};
    std::vector<int> fds;      // by order of joining: how the machine numbers them
    std::vector<int> members;  // likewise, as the ranks call themselves
    const size_t n_ranks;
    uint32_t version = 1;  // the last that the machine was asked for
    // Of each version that has not ended: an attempt may still be about an earlier one.
    std::map<uint32_t, AskedVersion> asked;
    Sha256Digest policy{};   // of the last committed version that has one
    Sha256Digest watched{};  // the changed file that was asked for; zeros when it has to be asked for again
    int64_t again_ns = 0;    // a file that some rank did not have is not offered again before
    // False when the rank has no place here.
    bool Seat(int fd, const JoinMessage& join);
    bool complete() const { return fds.size() == n_ranks; }
    // False when something more urgent waits, or a rank is lost.
    bool Request(SwitchReason reason, AskedVersion asked_version);
    // The version ended, and with it all before it.
    void End(const SwitchOutcome& outcome);
  };

  void TakeOffers();
  void AskForChangedFile(Communicator& communicator, int64_t now_ns);
  void Send(const Communicator& communicator, const ControlToken& token, const SwitchSends& sends);
  // Says how an attempt ended where that concerns the user.
  void Note(Communicator& communicator);
  uint64_t CallsOf(const ControlToken& token) const { return own_calls_(token).value_or(0); }

  const std::unique_ptr<PolicyWatch> watch_;
  const OwnCalls own_calls_;
  std::map<ControlToken, Communicator> communicators_;
  std::map<int, ControlToken> by_fd_;
  std::optional<Sha256Digest> latest_;  // what the policy file became
  int64_t look_ns_ = 0;
  std::mutex mutex_;  // guards offers_
  std::vector<std::pair<ControlToken, TableOffer>> offers_;
};

}  // namespace dynamiccl
