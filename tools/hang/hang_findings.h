// SPDX-License-Identifier: Apache-2.0
// Explains why a job stands still: where its ranks issued different calls, or which of them did not arrive at
// a call.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "tools/hang/job_calls.h"

namespace dynamiccl {

// X(Kind, "name in JSON"), likeliest cause first: errors of the program come before ranks that did nothing.
#define DYNAMICCL_HANG_KINDS(X)                                                                \
  X(InitSizesDiffer, "init-sizes-differ") /* ranks make a communicator of different sizes */   \
  X(Mismatch, "mismatch")                 /* the same call with another operation, size ... */ \
  X(SkippedCall, "skipped-call")          /* a rank left out a call that others issued */      \
  X(ExtraCall, "extra-call")              /* a rank issued a call that others did not */       \
  X(SwappedCalls, "swapped-calls")        /* a rank issued two calls in the other order */     \
  X(DecisionsDiffer, "decisions-differ")  /* tuners answered differently on some ranks */      \
  X(TransfersDiffer, "transfers-differ")  /* a send and its receive are of different sizes */  \
  X(Stopped, "stopped")                   /* a rank's process does not run */                  \
  X(AbsentFromInit, "absent-from-init")   /* a rank did not come to make a communicator */     \
  X(Cycle, "cycle")                       /* ranks wait for each other on communicators */     \
  X(Behind, "behind")                     /* a rank did not issue what the others issued */    \
  X(TransferAlone, "transfer-alone")      /* a send without its receive, or the reverse */     \
  X(Absent, "absent")                     /* a rank of a communicator has no trace here */     \
  X(OrderDiffers, "order-differs")        /* calls on two communicators in different order */  \
  X(InsideLibrary, "inside-library")      /* all ranks are in the same call */                 \
  X(Failed, "failed")                     /* a rank failed by itself, between calls */

enum class HangKind {
#define DYNAMICCL_HANG_KIND(kind, name) k##kind,
  DYNAMICCL_HANG_KINDS(DYNAMICCL_HANG_KIND)
#undef DYNAMICCL_HANG_KIND
};
std::string_view Name(HangKind kind);

// One cause, with the ranks that are responsible for it.
struct HangFinding {
  HangKind kind = HangKind::kBehind;
  // 0: the finding is about the job as a whole.
  uint64_t communicator = 0;
  // Number of the first call that the finding is about.
  uint64_t call_number = 0;
  // Responsible ranks, by their number in the communicator, or in the job if the finding is about no
  // communicator. Where two groups of ranks differ, the smaller group is responsible.
  std::vector<int32_t> ranks;
  // A sentence, followed by its details, each on a line of its own.
  std::vector<std::string> text;
};

// All findings about a job, and how many of its calls were compared.
struct HangDiagnosis {
  // Likeliest cause first; empty: nothing differs.
  std::vector<HangFinding> findings;
  uint64_t compared_decisions = 0;
  uint64_t compared_calls = 0;
  // Ranks of the job whose sends and receives were not compared with those of other ranks, because records of
  // their traces are missing. Ascending, each once.
  std::vector<int32_t> unmatched;
};

// Runs all checks. The findings OrderDiffers and InsideLibrary are reported only when nothing else was found,
// because both also occur in healthy jobs.
HangDiagnosis DiagnoseHang(const JobCalls& job);

}  // namespace dynamiccl
