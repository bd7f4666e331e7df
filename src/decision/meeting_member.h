// SPDX-License-Identifier: Apache-2.0
// One rank's side of a meeting, whose leader's side is Attestation: it pledges, and keeps to the verdict.
// Pure state, without sockets, clocks and threads. Protocol and proof obligations: docs/agreement.md.
#pragma once

#include <optional>
#include <string>

#include "src/decision/attestation.h"

namespace dynamiccl {

class MeetingMember {
 public:
  // Called before the first byte of the pledge leaves, each time that it is said. False: it must not be said,
  // since this rank has decided. From the first true on the rank is bound, whether or not the bytes arrive.
  bool Pledge();
  // The leader's. Verdicts of one meeting are all the same.
  void TakeVerdict(const Verdict& verdict);
  // The leader could not be reached in time. A rank that has not pledged decides for NCCL's choice, which
  // makes a yes impossible; a rank that has pledged decides nothing. True when it went alone.
  bool GoAlone(const std::string& why);
  // No call will use a verdict: the communicator is aborted, or is not born since its leader cannot be
  // reached.
  void Release(const std::string& why = "the communicator is gone");

  bool pledged() const { return pledged_; }
  // Empty until the rank has decided; never changes afterwards.
  const std::optional<Verdict>& decision() const { return decision_; }

 private:
  bool pledged_ = false;
  std::optional<Verdict> decision_;
};

}  // namespace dynamiccl
