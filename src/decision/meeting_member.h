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
  // Is called before the first byte of the pledge leaves, each time that it is sent. False: it must not be
  // sent, because this rank has decided. From the first true on the rank is bound, whether or not the bytes
  // arrive.
  bool Pledge();
  // Takes the leader's verdict. Verdicts of one meeting are all the same.
  void TakeVerdict(const Verdict& verdict);
  // The leader could not be reached in time. A rank that has not pledged decides for NCCL's choice, which
  // makes a yes impossible, and this returns true. A rank that has pledged decides nothing.
  bool GoAlone(const std::string& why);
  // No call will use a verdict: the communicator is aborted, or it will not be born because its leader cannot
  // be reached.
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
