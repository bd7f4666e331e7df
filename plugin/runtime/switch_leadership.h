// SPDX-License-Identifier: Apache-2.0
// The leader's end of switching, for every communicator whose ranks meet at this process: who joined, what
// the leader's machine says to them, and the changes of the policy file that it is told to spread. On the
// control server's thread.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <vector>

#include "plugin/runtime/changed_policy.h"
#include "src/decision/control_messages.h"
#include "src/decision/switching/switch_leader.h"

namespace dynamiccl {

class SwitchLeadership {
 public:
  // Calls that have begun on this process's rank of a communicator; empty without such a rank.
  using OwnCalls = std::function<std::optional<uint64_t>(const ControlToken&)>;

  SwitchLeadership(std::unique_ptr<PolicyWatch> watch, OwnCalls own_calls)
      : watch_(std::move(watch)), own_calls_(std::move(own_calls)) {}

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
  struct Communicator {
    explicit Communicator(int ranks) : leader(ranks), n_ranks(static_cast<size_t>(ranks)) {}
    SwitchLeader leader;
    ControlSecret secret{};
    std::vector<int> fds;      // by order of joining: how the machine numbers them
    std::vector<int> members;  // likewise, as the ranks call themselves
    const size_t n_ranks;
    uint32_t version = 1;   // the last that the machine was asked for
    Sha256Digest policy{};  // of `version`; zeros when it has to be asked again
    // Of each version since the last commit: an attempt may still be about an earlier one.
    std::map<uint32_t, Sha256Digest> policies;
    int64_t again_ns = 0;  // a policy that some rank did not have is not offered again before
    // False when the rank has no place here.
    bool Seat(int fd, const JoinMessage& join);
    bool complete() const { return fds.size() == n_ranks; }
  };

  void Ask(Communicator& communicator, int64_t now_ns);
  void Send(const Communicator& communicator, const ControlToken& token, const SwitchSends& sends);
  // Says how an attempt ended where that concerns the user.
  void Note(Communicator& communicator);
  uint64_t CallsOf(const ControlToken& token) const { return own_calls_(token).value_or(0); }

  const std::unique_ptr<PolicyWatch> watch_;  // null: nothing to switch to
  const OwnCalls own_calls_;
  std::map<ControlToken, Communicator> communicators_;
  std::map<int, ControlToken> by_fd_;
  std::optional<Sha256Digest> latest_;  // what the policy file became
  int64_t look_ns_ = 0;
};

}  // namespace dynamiccl
