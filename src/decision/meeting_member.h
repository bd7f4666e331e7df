// SPDX-License-Identifier: Apache-2.0
// One rank's side of a meeting, whose leader's side is Attestation: the rank pledges, and keeps to the
// verdict. Protocol and proof obligations: docs/agreement.md.
#pragma once

#include <optional>
#include <string>

#include "src/decision/attestation.h"

namespace dynamiccl {

// One rank's state in one meeting, owned by its pledge sender (plugin/runtime), one thread at a time. Pure
// state, without sockets, clocks and threads. It guarantees that a rank which may have pledged follows the
// leader's verdict, and that a rank which went alone never pledges.
class MeetingMember {
 public:
  // Call this before the first byte of the pledge leaves, each time that it is sent. False: the pledge must
  // not be sent, because this rank has decided. The first true binds the rank, whether or not the bytes
  // arrive.
  bool Pledge();
  // Takes the leader's verdict. Verdicts of one meeting are all the same.
  void TakeVerdict(const Verdict& verdict);
  // Reports that the leader could not be reached in time. A rank that has not pledged then decides for NCCL's
  // choice, which makes a yes impossible; returns true. A rank that has pledged decides nothing; returns
  // false.
  bool GoAlone(const std::string& why);
  // Ends the meeting because no call will use a verdict: the communicator is aborted, or it cannot be made
  // because its leader cannot be reached.
  void Release(const std::string& why = "the communicator is gone");

  // True once the rank is bound.
  bool pledged() const { return pledged_; }
  // Empty until the rank has decided; never changes afterwards.
  const std::optional<Verdict>& decision() const { return decision_; }

 private:
  bool pledged_ = false;
  std::optional<Verdict> decision_;
};

}  // namespace dynamiccl
