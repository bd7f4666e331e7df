// SPDX-License-Identifier: Apache-2.0
// Measures all parts in turns. It first measures rounds of many steps, and then single steps with cold
// caches.
#include "benchmarks/inference_parts.h"

#include <functional>
#include <memory>
#include <random>

#include "src/base/clock.h"
#include "src/base/statistics.h"
#include "src/policy/structure_inference.h"

namespace dynamiccl {
namespace {

constexpr int kRounds = 15;
// Number of steps in a round, which takes about a millisecond. An agent remembers more states than that, so a
// round may consist of lookups only.
constexpr size_t kStepsARound = 4000;
static_assert(kStepsARound < VisitedStates::kStates && kStepsARound < VisitedStates::kPauseCalls);
constexpr int kColdSteps = 100;
// Number of bytes that are touched before a cold step. It is more than a core's share of any last-level
// cache.
constexpr size_t kEvictBytes = 64 << 20;
constexpr size_t kRepeatedCalls = 256;

// One thing to measure.
struct Part {
  std::string name;
  std::function<void(size_t)> step;
  // Runs before each round, not timed.
  std::function<void()> prepare = [] {};
};

CollectiveCall CallOf(size_t number, uint64_t bytes) {
  CollectiveCall call;
  call.collective = static_cast<Collective>(number % kTunableCollectives);
  call.bytes = bytes;
  call.n_ranks = 8;
  return call;
}

// Returns calls with sizes from bytes to gigabytes.
std::vector<CollectiveCall> RepeatedCalls() {
  std::mt19937_64 random(2);
  std::vector<CollectiveCall> calls;
  for (size_t i = 0; i < kRepeatedCalls; ++i)
    calls.push_back(CallOf(random(), random() >> (30 + random() % 30)));
  return calls;
}

// Returns a call that differs from all others. Multiplying by an odd factor permutes the numbers below 2^26.
CollectiveCall NewCall(uint64_t number) {
  return CallOf(number * 7 / 3, number * 40'503 * 997 % (1 << 26));
}

// The objects that the parts work on. Like a communicator, each part has its own state.
struct Subjects {
  explicit Subjects(const Policy& policy)
      : network(*policy.structure_network), known(policy), kept(policy), computed(policy) {
    CallTokenizer tokens_of;
    for (uint64_t i = 0; i < kStepsARound; ++i) tokens.push_back(tokens_of.Next(NewCall(i)));
  }

  const StructureNetwork& network;
  const std::vector<CollectiveCall> repeated = RepeatedCalls();
  std::vector<CallToken> tokens;
  CallTokenizer tokenizer;
  LstmState state, heads_state;
  alignas(64) int32_t sums[kGateRows];
  alignas(64) int32_t logits[kPackedHeadRows];
  StructureWinners winners;
  NextCall next;
  StructureAgent known, kept, computed;
  // Number of new calls so far.
  uint64_t calls = 0;
};

// Keeps the compiler from removing a step whose result is not used.
template <typename T>
void Keep(const T& value) {
  asm volatile("" : : "g"(&value) : "memory");
}

void AddParts(Subjects& s, std::vector<Part>& parts) {
  const StructureKernels& kernels = s.network.kernels();
  const PackedStructure& packed = s.network.packed();
  parts.push_back({"nothing", [&s](size_t i) { Keep(NewCall(s.calls + i)); }});
  parts.push_back({"token", [&s](size_t i) { Keep(s.tokenizer.Next(NewCall(s.calls + i))); }});
  parts.push_back({"gates", [&](size_t i) { kernels.gates(packed, s.tokens[i].data(), s.state, s.sums); }});
  parts.push_back({"gates and state", [&](size_t i) { kernels.step(packed, s.tokens[i].data(), s.state); }});
  parts.push_back({"heads", [&](size_t) { kernels.logits(packed, s.state, s.logits); }});
  parts.push_back(
      {"heads and answers", [&](size_t) { kernels.recognise(packed, s.state, s.winners.lanes, s.next); }});
}

void AddCalls(Subjects& s, const Policy& policy, std::vector<Part>& parts) {
  const auto repeat = [&s](size_t i) { s.known.Step(s.repeated[i % kRepeatedCalls]); };
  parts.push_back({"call, looked up", repeat, [repeat] {
                     for (size_t i = 0; i < kStepsARound; ++i) repeat(i);
                   }});
  parts.push_back({"call, computed", [&s](size_t) { s.computed.Step(NewCall(++s.calls)); },
                   [&s, &policy] {
                     // After so many calls that never repeat, the agent stops looking states up.
                     s.computed.Restart(policy);
                     for (size_t i = 0; i <= VisitedStates::kStates; ++i) s.computed.Step(NewCall(++s.calls));
                   }});
  parts.push_back({"call, computed and kept", [&s](size_t) { s.kept.Step(NewCall(++s.calls)); },
                   [&s, &policy] { s.kept.Restart(policy); }});
}

double WarmRound(const Part& part) {
  part.prepare();
  const int64_t start = MonotonicNanoseconds();
  for (size_t i = 0; i < kStepsARound; ++i) part.step(i);
  return static_cast<double>(MonotonicNanoseconds() - start) / kStepsARound;
}

// Times one step after other data has filled the caches, as between two calls of a job.
double ColdStep(const Part& part, std::vector<char>& other, size_t step) {
  for (size_t byte = 0; byte < other.size(); byte += 64) other[byte] = static_cast<char>(other[byte] + 1);
  (void)MonotonicNanoseconds();  // warms up the clock itself
  const int64_t start = MonotonicNanoseconds();
  part.step(step);
  return static_cast<double>(MonotonicNanoseconds() - start);
}

PartCost CostOf(const Part& part, const std::vector<double>& warm, const std::vector<double>& cold) {
  return {part.name,           Quantile(warm, 0.5), Quantile(warm, 0.25), Quantile(warm, 0.75),
          Quantile(cold, 0.5), Quantile(cold, 0.95)};
}

}  // namespace

std::vector<PartCost> MeasureInferenceParts(const Policy& policy, VectorSet set) {
  const Policy by_set = [&] {
    Policy copy = policy;
    copy.structure_network = std::make_shared<const StructureNetwork>(policy.tensors, set);
    return copy;
  }();
  const auto subjects = std::make_unique<Subjects>(by_set);
  std::vector<Part> parts;
  AddParts(*subjects, parts);
  AddCalls(*subjects, by_set, parts);
  std::vector<std::vector<double>> warm(parts.size()), cold(parts.size());
  for (int round = 0; round < kRounds; ++round) {
    for (size_t i = 0; i < parts.size(); ++i) warm[i].push_back(WarmRound(parts[i]));
  }
  std::vector<char> other(kEvictBytes);
  for (size_t step = 0; step < kColdSteps; ++step) {
    for (size_t i = 0; i < parts.size(); ++i) cold[i].push_back(ColdStep(parts[i], other, step));
  }
  std::vector<PartCost> costs;
  for (size_t i = 0; i < parts.size(); ++i) costs.push_back(CostOf(parts[i], warm[i], cold[i]));
  return costs;
}

}  // namespace dynamiccl
