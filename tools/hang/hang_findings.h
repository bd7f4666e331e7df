// SPDX-License-Identifier: Apache-2.0
// Why a job stands still: what its ranks did differently, or which of them did not come.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "tools/hang/job_calls.h"

namespace dynamiccl {

// X(Kind, "name in JSON"), what a program does wrong before what a rank does not do.
#define DYNAMICCL_HANG_KINDS(X)                                                                \
  X(BirthsDiffer, "births-differ")        /* ranks make a communicator of unlike sizes */      \
  X(Mismatch, "mismatch")                 /* the same call with another operation, size ... */ \
  X(SkippedCall, "skipped-call")          /* a rank left out a call that others issued */      \
  X(ExtraCall, "extra-call")              /* a rank issued a call that others did not */       \
  X(SwappedCalls, "swapped-calls")        /* a rank issued two calls in the other order */     \
  X(DecisionsDiffer, "decisions-differ")  /* tuners answered unlike on some ranks */           \
  X(TransfersDiffer, "transfers-differ")  /* a send and its receive are of unlike sizes */     \
  X(AbsentFromBirth, "absent-from-birth") /* a rank did not come to make a communicator */     \
  X(Cycle, "cycle")                       /* ranks wait for each other on communicators */     \
  X(Behind, "behind")                     /* a rank did not issue what the others issued */    \
  X(TransferAlone, "transfer-alone")      /* a send without its receive, or the reverse */     \
  X(Absent, "absent")                     /* a rank of a communicator has no trace here */     \
  X(OrderDiffers, "order-differs")        /* calls on two communicators in unlike order */     \
  X(InsideLibrary, "inside-library")      /* all ranks are in the same call */

enum class HangKind {
#define DYNAMICCL_HANG_KIND(kind, name) k##kind,
  DYNAMICCL_HANG_KINDS(DYNAMICCL_HANG_KIND)
#undef DYNAMICCL_HANG_KIND
};
std::string_view Name(HangKind kind);

struct HangFinding {
  HangKind kind = HangKind::kBehind;
  uint64_t communicator = 0;
  uint64_t call_number = 0;    // the first one concerned
  std::vector<int32_t> ranks;  // in the communicator, whose doing it is; the lesser part where ranks differ
  std::vector<std::string> text;  // a sentence, then what belongs to it
};

struct HangDiagnosis {
  std::vector<HangFinding> findings;  // likeliest cause first; empty: nothing differs
  uint64_t compared_decisions = 0;
  uint64_t compared_calls = 0;
};

HangDiagnosis DiagnoseHang(const JobCalls& job);

}  // namespace dynamiccl
