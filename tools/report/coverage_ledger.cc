// SPDX-License-Identifier: Apache-2.0
// Sums up a job's communication by what decides it. A first pass over the calls finds the mean time of each
// kind of call, a second pass builds the sums.
#include "tools/report/coverage_ledger.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "src/decision/guard/waited_shares.h"
#include "tools/report/exposed_shares.h"

namespace dynamiccl {
namespace {

// From this share on, a percentage that is printed without decimals would read 100 %.
constexpr double kPrintsAsAll = 0.995;

// A kind of calls that are expected to take equally long: one communicator, collective and size.
struct CallKind {
  uint32_t communicator = 0;
  Collective collective = Collective::kAllReduce;
  uint64_t bytes = 0;
  friend auto operator<=>(const CallKind&, const CallKind&) = default;
};

struct TotalTime {
  double ns = 0;
  int64_t calls = 0;
  double mean_ns() const { return ns / static_cast<double>(calls); }
};

CallKind KindOf(const TraceCall& call) {
  return {call.communicator, call.issued.call.collective, call.issued.call.bytes};
}

std::map<CallKind, TotalTime> TotalTimesOf(const std::vector<TraceCall>& calls) {
  std::map<CallKind, TotalTime> timed;
  for (const TraceCall& call : calls) {
    if (call.issued.duration_ns < 0) continue;
    TotalTime& of = timed[KindOf(call)];
    of.ns += static_cast<double>(call.issued.duration_ns);
    ++of.calls;
  }
  return timed;
}

void Add(const IssuedCall& issued, double ns, CoveredCalls& to) {
  ++to.calls;
  to.bytes += issued.call.bytes;
  to.ns += ns;
}

// Share of `part` in the whole communication: by time if every call has a time, else by bytes, else by calls.
double ShareOf(const CoverageLedger& ledger, const CoveredCalls& part) {
  if (ledger.estimated_calls == ledger.total.calls && ledger.total.ns > 0) return part.ns / ledger.total.ns;
  if (ledger.total.bytes == 0)
    return static_cast<double>(part.calls) / static_cast<double>(ledger.total.calls);
  return static_cast<double>(part.bytes) / static_cast<double>(ledger.total.bytes);
}

// The unit (time, bytes or calls) in which ShareOf computes shares. The conditions must be the same as in
// ShareOf.
const char* UnitOf(const CoverageLedger& ledger) {
  if (ledger.estimated_calls == ledger.total.calls && ledger.total.ns > 0) return "communication time";
  return ledger.total.bytes == 0 ? "calls" : "bytes (no times for all calls)";
}

void AddExposed(const TraceCall& call, double ns, const ExposedShares& shares, ExposedTime& exposed) {
  const std::optional<double> share = shares.Of(call);
  if (ns <= 0 || !share) return;
  exposed.known_ns += ns;
  exposed.waited_ns += ns * *share;
  if (call.decision && IsLatencyCritical(call.decision->role, CriticalityOf(*share)))
    exposed.critical_ns += ns;
}

std::string DescribeExposed(const CoverageLedger& ledger) {
  const double tunable = ledger.of[static_cast<size_t>(Coverage::kTunable)].ns;
  if (ledger.exposed.known_ns <= 0) return "";
  const double known = ledger.exposed.known_ns / tunable;
  // From 99.5 % on, the text says "the tunable time", because rounding would print 99.6 % as 100 %.
  const std::string of =
      known > kPrintsAsAll ? "the tunable time" : fmt::format("{:.0f} % of the tunable time", 100 * known);
  std::string text = fmt::format("; the program waits for {:.0f} % of {}",
                                 100 * ledger.exposed.waited_ns / ledger.exposed.known_ns, of);
  if (known <= kPrintsAsAll) text += ", more is not known";
  if (ledger.exposed.critical_ns > 0)
    text += fmt::format(
        "; gathers of parameters that it waits for (latency-critical) take {:.0f} % of the tunable time",
        100 * ledger.exposed.critical_ns / tunable);
  return text;
}

}  // namespace

CoverageLedger LedgerOf(const SectionCalls& section) {
  const std::map<CallKind, TotalTime> timed = TotalTimesOf(section.calls);
  const ExposedShares shares(section);
  CoverageLedger ledger;
  for (const TraceCall& call : section.calls) {
    double ns = static_cast<double>(call.issued.duration_ns);
    if (ns < 0) {
      const auto alike = timed.find(KindOf(call));
      ns = alike == timed.end() ? -1 : alike->second.mean_ns();
    }
    ledger.estimated_calls += ns >= 0 ? 1 : 0;
    Add(call.issued, std::max(ns, 0.0), ledger.of[static_cast<size_t>(call.issued.coverage)]);
    Add(call.issued, std::max(ns, 0.0), ledger.total);
    AddExposed(call, ns, shares, ledger.exposed);
  }
  return ledger;
}

std::string Describe(const CoverageLedger& ledger) {
  if (ledger.total.calls == 0) return "";
  const auto text = [&](Coverage coverage) {
    const double share = ShareOf(ledger, ledger.of[static_cast<size_t>(coverage)]);
    return fmt::format("{} {:.1f} %", Name(coverage), 100 * share);
  };
  std::vector<Coverage> others;
  for (int i = 0; i < kCoverages; ++i) {
    const auto coverage = static_cast<Coverage>(i);
    if (coverage != Coverage::kTunable && ledger.of[static_cast<size_t>(i)].calls > 0)
      others.push_back(coverage);
  }
  std::stable_sort(others.begin(), others.end(), [&](Coverage a, Coverage b) {
    return ShareOf(ledger, ledger.of[static_cast<size_t>(a)]) >
           ShareOf(ledger, ledger.of[static_cast<size_t>(b)]);
  });
  std::string line = fmt::format("{} of the {}", text(Coverage::kTunable), UnitOf(ledger));
  for (size_t i = 0; i < others.size(); ++i) line += (i == 0 ? "; " : ", ") + text(others[i]);
  return line + DescribeExposed(ledger);
}

Json ToJson(const CoverageLedger& ledger) {
  Json json = {{"calls", ledger.total.calls}, {"calls_with_time", ledger.estimated_calls}};
  if (ledger.exposed.known_ns > 0) {
    json["exposed"] = {{"known_seconds", ledger.exposed.known_ns * 1e-9},
                       {"waited_seconds", ledger.exposed.waited_ns * 1e-9},
                       {"latency_critical_seconds", ledger.exposed.critical_ns * 1e-9}};
  }
  for (int i = 0; i < kCoverages; ++i) {
    const CoveredCalls& of = ledger.of[static_cast<size_t>(i)];
    if (of.calls == 0) continue;
    json[std::string(Name(static_cast<Coverage>(i)))] = {
        {"calls", of.calls}, {"bytes", of.bytes}, {"seconds", of.ns * 1e-9}};
  }
  return json;
}

}  // namespace dynamiccl
