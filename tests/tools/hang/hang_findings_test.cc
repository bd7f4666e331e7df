// SPDX-License-Identifier: Apache-2.0
// Each test makes a job that hangs for one known reason. The finding must name reason, rank and call. The
// jobs have the form that recorders leave, with random programs, ranks and places.
#include "tools/hang/hang_findings.h"
#include "tools/hang/hang_checks.h"

#include <fmt/ranges.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <random>

#include "traces/format/record_views.h"

namespace dynamiccl {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

constexpr uint64_t kAll = 0xa11;    // The id of the communicator of all ranks.
constexpr uint64_t kHalf = 0xba1f;  // The communicator of ranks 2n and 2n + 1 has this id plus n.

struct Step {
  uint64_t communicator = kAll;
  IssuedCall issued;
  CollectiveConfig decision{Algorithm::kRing, Protocol::kLL, 4};
};

// The steps of each rank in order, before a fault is inserted.
struct Program {
  int n_ranks = 8;
  std::vector<std::vector<Step>> steps;  // By rank.
  std::vector<bool> inside;              // True if the last step has not returned.
  std::vector<bool> left_out;            // True if the rank has no trace.
  std::vector<bool> closed;
  std::vector<InsideMark> inits;  // By rank. Its `what` is 0 if there is none.
};

Step RandomStep(std::mt19937_64& random) {
  Step step;
  CollectiveCall& call = step.issued.call;
  call.collective = static_cast<Collective>(random() % kTunableCollectives);
  call.bytes = 64 + random() % 4096 * 64;
  call.data_type = random() % 2 == 0 ? DataType::kFloat32 : DataType::kBfloat16;
  step.issued.root_or_peer = call.collective <= Collective::kReduce ? static_cast<int>(random() % 8) : -1;
  return step;
}

uint64_t PairOf(int rank) {
  return kHalf + static_cast<uint64_t>(rank / 2);
}

// Returns calls on the communicator of all ranks, with some calls on pairs of ranks in between. Neighbouring
// calls always differ.
Program RandomProgram(std::mt19937_64& random, size_t calls, int n_ranks = 8) {
  Program program;
  program.n_ranks = n_ranks;
  const auto ranks = static_cast<size_t>(n_ranks);
  program.steps.resize(ranks);
  for (size_t i = 0; i < calls; ++i) {
    Step step = RandomStep(random);
    step.issued.call.bytes += i * (uint64_t{1} << 20);
    const bool on_pairs = random() % 3 == 0;
    for (size_t rank = 0; rank < ranks; ++rank) {
      step.communicator = on_pairs ? PairOf(static_cast<int>(rank)) : kAll;
      program.steps[rank].push_back(step);
    }
  }
  program.inside.assign(ranks, false);
  program.left_out.assign(ranks, false);
  program.closed.assign(ranks, false);
  program.inits.assign(ranks, InsideMark{});
  return program;
}

TraceSection SectionOfRank(const Program& program, int rank) {
  const auto at = static_cast<size_t>(rank);
  TraceSection section;
  section.rank = rank;
  section.world = program.n_ranks;
  section.process_id = 1000 + rank;
  section.host = "node";
  section.closed = program.closed[at];
  int64_t now = 1000;
  const auto add = [&](TraceRecord record) {
    record.issued_ns = ++now;
    Seal(record);
    section.records.push_back(record);
  };
  add(CommunicatorRecord(0, {kAll, rank, program.n_ranks, 1}, 0));
  add(CommunicatorRecord(1, {PairOf(rank), rank % 2, 2, 1}, 0));
  std::array<uint64_t, 2> numbers{};
  for (size_t i = 0; i < program.steps[at].size(); ++i) {
    Step step = program.steps[at][i];
    const uint32_t communicator = step.communicator == kAll ? 0 : 1;
    const bool transfer = step.issued.call.collective >= Collective::kSendRecv;
    step.issued.call.call_number = transfer ? numbers[communicator] : numbers[communicator]++;
    const bool returned = !(program.inside[at] && i + 1 == program.steps[at].size());
    if (!transfer)
      add(DecisionRecord(communicator, step.issued.call, {0, step.decision, DecidedBy::kPolicy, 1}));
    if (returned) {
      add(CallRecord(communicator, step.issued));
      continue;
    }
    InsideMark mark{};
    mark.call_number = step.issued.call.call_number;
    mark.bytes = step.issued.call.bytes;
    mark.communicator = communicator;
    mark.root_or_peer = static_cast<int16_t>(step.issued.root_or_peer);
    mark.group_size = 1;
    mark.collective = static_cast<uint8_t>(step.issued.call.collective);
    mark.data_type = static_cast<uint8_t>(step.issued.call.data_type);
    mark.op = static_cast<uint8_t>(step.issued.call.op);
    mark.what = static_cast<uint8_t>(InsideOf::kCall);
    add(InsideRecord(mark));
  }
  if (program.inits[at].what != 0) add(InsideRecord(program.inits[at]));
  return section;
}

HangDiagnosis Diagnose(const Program& program) {
  JobCalls job;
  for (int rank = 0; rank < program.n_ranks; ++rank) {
    if (!program.left_out[static_cast<size_t>(rank)]) job.Add(SectionOfRank(program, rank));
  }
  return DiagnoseHang(job);
}

// Puts a fault at a random place of a program and returns the finding that it must give.
struct Expected {
  HangKind kind;
  std::vector<int32_t> ranks;
  uint64_t communicator = kAll;
  std::optional<uint64_t> call;
};
using Fault = std::function<Expected(Program&, std::mt19937_64&)>;

// Returns the number of the step's call on its communicator.
uint64_t NumberAt(const Program& program, size_t rank, size_t step) {
  const auto& steps = program.steps[rank];
  uint64_t number = 0;
  for (size_t i = 0; i < step; ++i)
    number += steps[i].communicator == steps[step].communicator &&
              steps[i].issued.call.collective < Collective::kSendRecv;
  return number;
}

// Returns the index of a random step on the communicator of all ranks, not near the program's begin or end.
size_t StepOnAll(const Program& program, std::mt19937_64& random) {
  const auto& steps = program.steps[0];
  while (true) {
    const size_t step = 4 + random() % (steps.size() - 12);
    if (steps[step].communicator == kAll) return step;
  }
}

void CutAfter(Program& program, size_t rank, size_t steps) {
  program.steps[rank].resize(steps);
}

// Stops the program at `step`: the ranks in `late` do not reach it, and all other ranks reach it and no later
// step. If `inside` is true, the call of `step` has not returned on those other ranks.
void StandAt(Program& program, size_t step, const std::vector<int32_t>& late, bool inside) {
  for (size_t rank = 0; rank < program.steps.size(); ++rank) {
    const bool is_late = std::find(late.begin(), late.end(), static_cast<int32_t>(rank)) != late.end();
    CutAfter(program, rank, is_late ? step : step + 1);
    program.inside[rank] = inside && !is_late;
  }
}

Expected Late(Program& program, std::mt19937_64& random, std::vector<int32_t> late, bool inside) {
  const size_t step = StepOnAll(program, random);
  const uint64_t number = NumberAt(program, 0, step);
  StandAt(program, step, late, inside);
  return {HangKind::kBehind, std::move(late), kAll, number};
}

// Applies `change` to one rank's call at a random place.
Expected Changed(Program& program, std::mt19937_64& random, const std::function<void(Step&)>& change) {
  const size_t step = StepOnAll(program, random);
  const size_t rank = 1 + random() % (program.steps.size() - 1);
  change(program.steps[rank][step]);
  StandAt(program, step, {}, true);
  return {HangKind::kMismatch, {static_cast<int32_t>(rank)}, kAll, NumberAt(program, 0, step)};
}

Step Transfer(Collective direction, int peer, uint64_t bytes) {
  Step step;
  step.issued.call.collective = direction;
  step.issued.call.bytes = bytes;
  step.issued.root_or_peer = peer;
  return step;
}

InsideMark Init(uint64_t id, int rank, int n_ranks) {
  InsideMark mark{};
  mark.bytes = id;
  mark.root_or_peer = static_cast<int16_t>(rank);
  mark.group_size = static_cast<uint16_t>(n_ranks);
  mark.what = static_cast<uint8_t>(InsideOf::kInit);
  return mark;
}

using NamedFault = std::pair<const char*, Fault>;

std::vector<NamedFault> RanksThatStand() {
  return {
      {"a rank stopped, the others are inside the call",
       [](Program& p, auto& random) { return Late(p, random, {static_cast<int32_t>(random() % 8)}, true); }},
      {"a rank was killed, the others had returned",
       [](Program& p, auto& random) { return Late(p, random, {static_cast<int32_t>(random() % 8)}, false); }},
      {"a rank ended in order",
       [](Program& p, auto& random) {
         const auto rank = static_cast<int32_t>(random() % 8);
         p.closed[static_cast<size_t>(rank)] = true;
         return Late(p, random, {rank}, true);
       }},
      {"a node of four ranks stopped",
       [](Program& p, auto& random) {
         return Late(p, random, {4, 5, 6, 7}, true);
       }},
      {"a rank stopped, and the others stopped some calls later, each at another one",
       [](Program& p, auto& random) {
         const auto lost = static_cast<int32_t>(random() % 8);
         const size_t step = StepOnAll(p, random);
         const uint64_t number = NumberAt(p, 0, step);
         for (size_t rank = 0; rank < 8; ++rank) CutAfter(p, rank, step + 1 + rank);
         CutAfter(p, static_cast<size_t>(lost), step);
         return Expected{HangKind::kBehind, {lost}, kAll, number};
       }},
      {"a rank that others wait for waits for another",
       [](Program& p, auto& random) {
         // Rank 3 stops. Rank 2 waits for rank 3 in their pair, and all others wait for both.
         const size_t step = StepOnAll(p, random);
         for (auto& steps : p.steps) steps.resize(step + 1);
         p.inside.assign(8, true);
         p.inside[3] = false;
         for (size_t rank : {2u, 3u}) CutAfter(p, rank, step);
         Step pair = RandomStep(random);
         pair.communicator = PairOf(2);
         p.steps[2].push_back(pair);
         return Expected{HangKind::kBehind, {3}, PairOf(3) < kAll ? PairOf(3) : kAll, {}};
       }},
  };
}

std::vector<NamedFault> CallsThatDiffer() {
  return {
      {"another operation",
       [](Program& p, auto& random) {
         return Changed(p, random, [](Step& step) {
           Collective& collective = step.issued.call.collective;
           collective =
               collective == Collective::kAllReduce ? Collective::kAllGather : Collective::kAllReduce;
           step.issued.root_or_peer = -1;
         });
       }},
      {"another size",
       [](Program& p, auto& random) {
         return Changed(p, random, [](Step& step) { step.issued.call.bytes += 4; });
       }},
      {"another type",
       [](Program& p, auto& random) {
         return Changed(p, random, [](Step& step) { step.issued.call.data_type = DataType::kInt64; });
       }},
      {"another reduction",
       [](Program& p, auto& random) {
         return Changed(p, random, [](Step& step) { step.issued.call.op = ReduceOp::kMax; });
       }},
      {"another root",
       [](Program& p, auto& random) {
         return Changed(p, random, [](Step& step) { step.issued.root_or_peer = 9; });
       }},
      {"a call left out",
       [](Program& p, auto& random) {
         const size_t step = StepOnAll(p, random);
         const uint64_t number = NumberAt(p, 0, step);
         p.steps[5].erase(p.steps[5].begin() + static_cast<std::ptrdiff_t>(step));
         return Expected{HangKind::kSkippedCall, {5}, kAll, number};
       }},
      {"a call more",
       [](Program& p, auto& random) {
         const size_t step = StepOnAll(p, random);
         const uint64_t number = NumberAt(p, 0, step);
         Step more = RandomStep(random);
         more.issued.call.bytes = 12;
         p.steps[6].insert(p.steps[6].begin() + static_cast<std::ptrdiff_t>(step), more);
         return Expected{HangKind::kExtraCall, {6}, kAll, number};
       }},
      {"two calls in the other order",
       [](Program& p, auto& random) {
         size_t step = 0;
         do step = StepOnAll(p, random);
         while (p.steps[0][step + 1].communicator != kAll);
         std::swap(p.steps[4][step], p.steps[4][step + 1]);
         return Expected{HangKind::kSwappedCalls, {4}, kAll, NumberAt(p, 0, step)};
       }},
      {"another number of calls in a group",
       [](Program& p, auto& random) {
         const size_t step = StepOnAll(p, random);
         p.steps[1][step].issued.call.group_size = 3;
         return Expected{HangKind::kMismatch, {1}, kAll, NumberAt(p, 0, step)};
       }},
  };
}

std::vector<NamedFault> RanksAndTransfersThatAreMissing() {
  return {
      {"no trace of a rank",
       [](Program& p, auto&) {
         p.left_out[7] = true;
         return Expected{HangKind::kAbsent, {7}, kAll, {}};
       }},
      {"a rank that does not come to make a communicator",
       [](Program& p, auto& random) {
         const int rank = static_cast<int>(random() % 8);
         for (int other = 0; other < 8; ++other) {
           if (other != rank) p.inits[static_cast<size_t>(other)] = Init(0x999, other, 8);
         }
         return Expected{HangKind::kAbsentFromInit, {rank}, 0x999, {}};
       }},
      {"a rank that thinks of another size of the communicator",
       [](Program& p, auto&) {
         for (int rank = 0; rank < 8; ++rank)
           p.inits[static_cast<size_t>(rank)] = Init(0x999, rank, rank == 2 ? 9 : 8);
         return Expected{HangKind::kInitSizesDiffer, {2}, 0x999, {}};
       }},
      {"a send that nobody receives",
       [](Program& p, auto&) {
         p.steps[1].push_back(Transfer(Collective::kSend, 6, 512));
         return Expected{HangKind::kTransferAlone, {6}, kAll, {}};
       }},
      {"a receive that nobody sends",
       [](Program& p, auto&) {
         p.steps[1].push_back(Transfer(Collective::kRecv, 6, 512));
         p.inside[1] = true;
         return Expected{HangKind::kTransferAlone, {6}, kAll, {}};
       }},
      {"a send and a receive of unlike sizes",
       [](Program& p, auto&) {
         p.steps[1].push_back(Transfer(Collective::kSend, 6, 512));
         p.steps[6].push_back(Transfer(Collective::kRecv, 1, 1024));
         return Expected{HangKind::kTransfersDiffer, {1, 6}, kAll, {}};
       }},
  };
}

std::vector<NamedFault> NothingThatOneCallShows() {
  return {
      {"ranks that wait for each other on two communicators",
       [](Program& p, auto& random) {
         // Of ranks 0 and 1, rank 0 is in a call of their pair and rank 1 is in a call of all ranks.
         Step pair = RandomStep(random);
         pair.communicator = PairOf(0);
         Step all = RandomStep(random);
         p.steps[0].push_back(pair);
         for (size_t rank = 1; rank < 8; ++rank) p.steps[rank].push_back(all);
         p.inside.assign(8, true);
         return Expected{HangKind::kCycle, {0, 1}, kAll, {}};
       }},
      {"calls of two communicators in unlike order, all returned",
       [](Program& p, auto& random) {
         Step pair = RandomStep(random);
         pair.communicator = PairOf(0);
         const Step all = RandomStep(random);
         p.steps[0].push_back(pair);
         for (auto& steps : p.steps) steps.push_back(all);
         p.steps[1].push_back(pair);
         return Expected{HangKind::kOrderDiffers, {0, 1}, kAll, {}};
       }},
      {"tuners that answer unlike",
       [](Program& p, auto& random) {
         const size_t step = StepOnAll(p, random);
         p.steps[3][step].decision.protocol = Protocol::kSimple;
         StandAt(p, step, {}, true);
         return Expected{HangKind::kDecisionsDiffer, {3}, kAll, NumberAt(p, 0, step)};
       }},
      {"a network that stands still",
       [](Program& p, auto& random) {
         const size_t step = StepOnAll(p, random);
         StandAt(p, step, {}, true);
         return Expected{HangKind::kInsideLibrary, {0, 1, 2, 3, 4, 5, 6, 7}, kAll, NumberAt(p, 0, step)};
       }},
  };
}

const std::vector<NamedFault>& Faults() {
  static const std::vector<NamedFault> faults = [] {
    std::vector<NamedFault> all;
    for (auto& some :
         {RanksThatStand(), CallsThatDiffer(), RanksAndTransfersThatAreMissing(), NothingThatOneCallShows()})
      all.insert(all.end(), some.begin(), some.end());
    return all;
  }();
  return faults;
}

class HangOf : public testing::TestWithParam<size_t> {};

TEST_P(HangOf, IsNamedFirst) {
  const auto& [name, fault] = Faults()[GetParam()];
  for (uint64_t seed = 0; seed < 40; ++seed) {
    std::mt19937_64 random(seed);
    Program program = RandomProgram(random, 40);
    const Expected expected = fault(program, random);
    const HangDiagnosis diagnosis = Diagnose(program);
    ASSERT_FALSE(diagnosis.findings.empty()) << name << ", seed " << seed;
    const HangFinding& first = diagnosis.findings.front();
    ASSERT_EQ(Name(first.kind), Name(expected.kind)) << name << ", seed " << seed;
    std::vector<int32_t> ranks = first.ranks;
    std::sort(ranks.begin(), ranks.end());
    ranks.erase(std::unique(ranks.begin(), ranks.end()), ranks.end());
    EXPECT_EQ(ranks, expected.ranks) << name << ", seed " << seed;
    EXPECT_EQ(first.call_number, expected.call.value_or(first.call_number)) << name << ", seed " << seed;
  }
}

INSTANTIATE_TEST_SUITE_P(Kinds, HangOf, testing::Range<size_t>(0, Faults().size()));

// Rank 2 does not reach the others' last call. The text about rank 2 depends on what its launcher saw.
TEST(Hang, SaysHowARankEndedAsFarAsTheLauncherSawIt) {
  using How = ProcessEnd::How;
  std::mt19937_64 random(5);
  Program program = RandomProgram(random, 60);
  Late(program, random, {2}, true);
  const auto text_with = [&](const ProcessEnd& end) {
    JobCalls job;
    for (int rank = 0; rank < program.n_ranks; ++rank) {
      TraceSection section = SectionOfRank(program, rank);
      if (rank == 2) section.set_end(end);
      job.Add(section);
    }
    const HangDiagnosis diagnosis = DiagnoseHang(job);
    return diagnosis.findings.empty() ? ""
                                      : fmt::format("{}", fmt::join(diagnosis.findings.front().text, "\n"));
  };
  EXPECT_THAT(text_with({How::kKilled, false, 9}), HasSubstr("signal 9 (SIGKILL) killed it"));
  EXPECT_THAT(text_with({How::kExited, false, 7}),
              HasSubstr("left with exit code 7 and not in order, as _exit"));
  EXPECT_THAT(text_with({How::kKilled, true, 15}), HasSubstr("the launcher ended it"));
  EXPECT_THAT(text_with({}),
              AllOf(HasSubstr("killed, left by _exit, stopped"),
                    HasSubstr("a trace does not tell a kill from _exit: `dynamiccl record -n`")));
  EXPECT_THAT(text_with({How::kKilled, false, 9}), Not(HasSubstr("does not tell")));
  // The ranks stop between two calls, so nothing differs. The job has failed nevertheless.
  program = RandomProgram(random, 60);
  EXPECT_THAT(text_with({How::kExited, false, 7}), AllOf(HasSubstr("all ranks issued the same calls"),
                                                         HasSubstr("rank 2"), HasSubstr("exit code 7")));
  EXPECT_EQ(text_with({How::kExited, false, 0}), "");
  EXPECT_EQ(text_with({How::kKilled, true, 15}), "");
}

TEST(Hang, IsNotSeenInAJobThatOnlyEnded) {
  for (uint64_t seed = 0; seed < 50; ++seed) {
    std::mt19937_64 random(seed);
    const HangDiagnosis diagnosis = Diagnose(RandomProgram(random, 60));
    EXPECT_TRUE(diagnosis.findings.empty()) << Name(diagnosis.findings.front().kind);
    EXPECT_GT(diagnosis.compared_calls, 60u);
    EXPECT_GT(diagnosis.compared_decisions, 60u);
  }
}

// Rings keep only the newest records, so each rank's records begin at another call.
TEST(Hang, IsSeenWhereRingsBeginAtUnlikeCalls) {
  std::mt19937_64 random(7);
  Program program = RandomProgram(random, 400);
  StandAt(program, 380, {6}, true);
  while (program.steps[0].back().communicator != kAll) {
    for (auto& steps : program.steps) steps.pop_back();
  }
  JobCalls job;
  for (int rank = 0; rank < 8; ++rank) {
    TraceSection section = SectionOfRank(program, rank);
    const auto lost = static_cast<std::ptrdiff_t>(100 + random() % 100);
    section.records.erase(section.records.begin() + 2, section.records.begin() + 2 + lost);
    section.lost = static_cast<uint64_t>(lost);
    job.Add(section);
  }
  const HangDiagnosis diagnosis = DiagnoseHang(job);
  ASSERT_EQ(diagnosis.findings.size(), 1u);
  EXPECT_EQ(diagnosis.findings[0].kind, HangKind::kBehind);
  EXPECT_EQ(diagnosis.findings[0].ranks, std::vector<int32_t>{6});
}

TEST(Ranks, AreWrittenAsRanges) {
  const auto text = [](std::vector<int32_t> ranks) { return RankList(ranks); };
  EXPECT_EQ(text({}), "no rank");
  EXPECT_EQ(text({3}), "rank 3");
  EXPECT_EQ(text({2, 1}), "ranks 1 and 2");
  EXPECT_EQ(text({9, 0, 1, 2, 5, 7, 8}), "ranks 0 to 2, 5 and 7 to 9");
}

}  // namespace
}  // namespace dynamiccl
