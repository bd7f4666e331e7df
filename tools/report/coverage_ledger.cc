// SPDX-License-Identifier: Apache-2.0
#include "tools/report/coverage_ledger.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <tuple>

namespace dynamiccl {
namespace {

using CallKind = std::tuple<uint32_t, Collective, uint64_t>;  // communicator, collective, bytes

struct Mean {
  double ns = 0;
  int64_t calls = 0;
};

CallKind KindOf(const TraceCall& call) {
  return {call.communicator, call.issued.call.collective, call.issued.call.bytes};
}

std::map<CallKind, Mean> MeansOf(const std::vector<TraceCall>& calls) {
  std::map<CallKind, Mean> means;
  for (const TraceCall& call : calls) {
    if (call.issued.duration_ns < 0) continue;
    Mean& mean = means[KindOf(call)];
    mean.ns += static_cast<double>(call.issued.duration_ns);
    ++mean.calls;
  }
  return means;
}

void Add(const IssuedCall& issued, double ns, CoveredCalls& to) {
  ++to.calls;
  to.bytes += issued.call.bytes;
  to.ns += ns;
}

// Share of the communication; by bytes where times are missing.
double ShareOf(const CoverageLedger& ledger, const CoveredCalls& part) {
  if (ledger.estimated_calls == ledger.total.calls && ledger.total.ns > 0) return part.ns / ledger.total.ns;
  if (ledger.total.bytes == 0)
    return static_cast<double>(part.calls) / static_cast<double>(ledger.total.calls);
  return static_cast<double>(part.bytes) / static_cast<double>(ledger.total.bytes);
}

const char* UnitOf(const CoverageLedger& ledger) {
  if (ledger.estimated_calls == ledger.total.calls && ledger.total.ns > 0) return "communication time";
  return ledger.total.bytes == 0 ? "calls" : "bytes (no times for all calls)";
}

}  // namespace

CoverageLedger LedgerOf(const std::vector<TraceCall>& calls) {
  const std::map<CallKind, Mean> means = MeansOf(calls);
  CoverageLedger ledger;
  for (const TraceCall& call : calls) {
    double ns = static_cast<double>(call.issued.duration_ns);
    if (ns < 0) {
      const auto mean = means.find(KindOf(call));
      ns = mean == means.end() ? -1 : mean->second.ns / static_cast<double>(mean->second.calls);
    }
    ledger.estimated_calls += ns >= 0 ? 1 : 0;
    Add(call.issued, std::max(ns, 0.0), ledger.of[static_cast<size_t>(call.issued.coverage)]);
    Add(call.issued, std::max(ns, 0.0), ledger.total);
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
  return line;
}

Json ToJson(const CoverageLedger& ledger) {
  Json json = {{"calls", ledger.total.calls}, {"calls_with_time", ledger.estimated_calls}};
  for (int i = 0; i < kCoverages; ++i) {
    const CoveredCalls& of = ledger.of[static_cast<size_t>(i)];
    if (of.calls == 0) continue;
    json[std::string(Name(static_cast<Coverage>(i)))] = {
        {"calls", of.calls}, {"bytes", of.bytes}, {"seconds", of.ns * 1e-9}};
  }
  return json;
}

}  // namespace dynamiccl
