// SPDX-License-Identifier: Apache-2.0
#include "tools/report/coverage_ledger.h"

#include <fmt/format.h>

#include <algorithm>

#include "src/decision/guard/waited_shares.h"

namespace dynamiccl {
namespace {

// From this share on, a percentage that is printed without decimals would read 100 %.
constexpr double kPrintsAsAll = 0.995;

TimedKind KindOf(const TraceCall& call) {
  return {call.communicator, call.issued.call.collective, call.issued.call.bytes};
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
  return ledger.total.bytes == 0 ? "calls" : "bytes (not all calls were timed)";
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

void KindTimes::Take(const TimedKind& kind, int64_t duration_ns) {
  if (duration_ns < 0) return;
  TotalTime& of = timed_[kind];
  of.ns += static_cast<double>(duration_ns);
  ++of.calls;
}

double KindTimes::MeanNs(const TimedKind& kind) const {
  const auto found = timed_.find(kind);
  return found == timed_.end() ? -1 : found->second.ns / static_cast<double>(found->second.calls);
}

void LedgerBuilder::Take(const TraceCall& call) {
  double ns = static_cast<double>(call.issued.duration_ns);
  if (ns < 0) ns = kinds_.MeanNs(KindOf(call));
  ledger_.estimated_calls += ns >= 0 ? 1 : 0;
  Add(call.issued, std::max(ns, 0.0), ledger_.of[static_cast<size_t>(call.issued.coverage)]);
  Add(call.issued, std::max(ns, 0.0), ledger_.total);
  AddExposed(call, ns, shares_, ledger_.exposed);
}

CoverageLedger LedgerOf(const SectionCalls& section) {
  KindTimes kinds;
  for (const TraceCall& call : section.calls) kinds.Take(KindOf(call), call.issued.duration_ns);
  const ExposedShares shares(section.waited_shares);
  LedgerBuilder builder(kinds, shares);
  for (const TraceCall& call : section.calls) builder.Take(call);
  return builder.ledger();
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
