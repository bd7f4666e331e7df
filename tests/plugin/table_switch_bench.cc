// SPDX-License-Identifier: Apache-2.0
// Measures what switching of tables costs on the thread that issues calls. It takes turns with three kinds of
// calls: calls without a switch, calls with a boundary ahead, and calls that take a new table whose verdict
// has come.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <memory>
#include <vector>

#include "plugin/runtime/switchable_tables.h"
#include "src/base/clock.h"
#include "src/base/interpolated_clock.h"
#include "src/base/statistics.h"
#include "src/decision/guard/call_feed.h"

namespace {

using dynamiccl::CallGate;
using dynamiccl::DecisionEngine;
using dynamiccl::EngineOptions;
using dynamiccl::MonotonicNanoseconds;
using dynamiccl::Policy;
using dynamiccl::SwitchableTables;

class TimedCalls {
 public:
  explicit TimedCalls(int switches) : switches_(switches) {}

  void Run() {
    const auto policy = std::make_shared<const Policy>();
    for (uint32_t version = 2; version < static_cast<uint32_t>(switches_) + 2; ++version) {
      // The control thread does all of this before the boundary.
      if (!tables_.Offer(version, policy, {})) std::abort();
      plain_.push_back(TimedCall());
      decided_.push_back(TimedDecision());
      fed_.push_back(TimedFeed());
      CallGate& gate = tables_.gate();
      gate.Arm(gate.calls() + 3, version);
      armed_.push_back(TimedCall());
      gate.Commit();
      tables_.Committed(version);
      (void)TimedCall();
      (void)TimedCall();
      switched_.push_back(TimedCall());
      if (tables_.current().version != version) std::abort();
    }
  }

  void Print() {
    std::vector<int64_t> clock;
    for (int i = 0; i < 100'000; ++i) {
      const int64_t begin = MonotonicNanoseconds();
      clock.push_back(MonotonicNanoseconds() - begin);
    }
    fmt::print("# nanoseconds on the issuing thread, {} switches; the clock itself included\n", switches_);
    fmt::print("{:<40} {:>7} {:>7} {:>7}\n", "", "p50", "p99", "p99.9");
    PrintLine("the clock alone", clock);
    PrintLine("call, nothing armed", plain_);
    PrintLine("a decision added to the digest", decided_);
    PrintLine("a decision told to the guard", fed_);
    PrintLine("call before an armed boundary", armed_);
    PrintLine("call at the boundary: takes the table", switched_);
  }

 private:
  int64_t TimedCall() {
    const int64_t begin = MonotonicNanoseconds();
    tables_.Enter(next_++);
    return MonotonicNanoseconds() - begin;
  }

  int64_t TimedDecision() {
    const int64_t begin = MonotonicNanoseconds();
    tables_.digest().Add({dynamiccl::Collective::kAllReduce, next_ << 4}, dynamiccl::kLeaveNcclAlone, 1);
    return MonotonicNanoseconds() - begin;
  }

  int64_t TimedFeed() {
    dynamiccl::DecidedCall call;
    call.number = next_;
    const int64_t begin = MonotonicNanoseconds();
    call.issued_ns = clock_.Now();
    feed_->Push(call);
    const int64_t time = MonotonicNanoseconds() - begin;
    feed_->Pop(call);
    return time;
  }

  static void PrintLine(const char* what, const std::vector<int64_t>& times) {
    fmt::print("{:<40} {:>7.0f} {:>7.0f} {:>7.0f}\n", what, dynamiccl::Median(times),
               dynamiccl::Quantile(times, 0.99), dynamiccl::Quantile(times, 0.999));
  }

  const int switches_;
  SwitchableTables tables_{std::make_shared<DecisionEngine>(EngineOptions{}),
                           [](const std::shared_ptr<const Policy>&, std::span<const std::byte>) {
                             return std::make_shared<DecisionEngine>(EngineOptions{});
                           }};
  const std::unique_ptr<dynamiccl::CallFeed> feed_ = std::make_unique<dynamiccl::CallFeed>();
  dynamiccl::InterpolatedClock clock_;
  uint64_t next_ = 0;
  std::vector<int64_t> plain_;
  std::vector<int64_t> decided_;
  std::vector<int64_t> fed_;
  std::vector<int64_t> armed_;
  std::vector<int64_t> switched_;
};

}  // namespace

int main(int argc, char** argv) {
  CLI::App app("What switching of tables costs on the issuing thread.");
  int switches = 20'000;
  app.add_option("--switches", switches, "How many.")->check(CLI::PositiveNumber);
  CLI11_PARSE(app, argc, argv);
  TimedCalls calls(switches);
  calls.Run();
  calls.Print();
  return 0;
}
