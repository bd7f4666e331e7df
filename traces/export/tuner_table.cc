// SPDX-License-Identifier: Apache-2.0
// Format: the CSV of NVIDIA's example tuner, docs/formats/override_rules.md. Neighbouring sizes with the same
// answer become one rule. When a size was answered several times, the last answer counts.
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <tuple>

#include "src/base/counted.h"
#include "traces/export/trace_export.h"
#include "traces/format/trace_calls.h"

namespace dynamiccl {
namespace {

// The fields that the rules of one group share.
struct Key {
  Collective collective;
  int32_t nodes;
  int32_t ranks;
  friend auto operator<=>(const Key&, const Key&) = default;
};

// The tuner's last answer for a size.
struct Choice {
  int64_t asked_ns;
  CollectiveConfig config;
};
using ChoicesBySize = std::map<uint64_t, Choice>;

std::string LowerCase(std::string_view name) {
  std::string text(name);
  std::transform(text.begin(), text.end(), text.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return text;
}

// The example tuner's spelling of an algorithm.
std::string_view SpellingOf(Algorithm algorithm) {
  switch (algorithm) {
    case Algorithm::kTree:
      return "tree";
    case Algorithm::kRing:
      return "ring";
    case Algorithm::kCollnetDirect:
      return "collnet_direct";
    case Algorithm::kCollnetChain:
      return "collnet_chain";
    case Algorithm::kNvls:
      return "nvls";
    case Algorithm::kNvlsTree:
      return "nvls_tree";
    case Algorithm::kPat:
      return "pat";
    case Algorithm::kUndefined:
      break;
  }
  return "";
}

// True for a call whose answer can be written as a rule.
bool IsRule(const TraceCall& call) {
  if (!call.decision || call.issued.call.collective >= Collective::kSendRecv) return false;
  const CollectiveConfig& config = call.decision->config;
  const auto protocol = static_cast<int>(config.protocol);
  return !SpellingOf(config.algorithm).empty() && protocol >= 0 && protocol < kProtocols;
}

// Returns `number`, or -1 ("any") if it is not known.
int32_t KnownOrAny(int32_t number) {
  return number >= 1 ? number : -1;
}

std::string Row(const Key& key, uint64_t from, uint64_t to, const CollectiveConfig& config) {
  const int channels = config.channels >= 1 && config.channels <= 64 ? config.channels : -1;
  return fmt::format("{},{},{},{},{},{},{},{},-1,-1\n", LowerCase(Name(key.collective)), from, to,
                     SpellingOf(config.algorithm), LowerCase(Name(config.protocol)), channels,
                     KnownOrAny(key.nodes), KnownOrAny(key.ranks));
}

// A row for each sequence of neighbouring sizes with the same config. Sizes between two sequences have no
// rule.
std::string Rows(const Key& key, const ChoicesBySize& choices) {
  std::string text;
  for (auto first = choices.begin(); first != choices.end();) {
    const CollectiveConfig config = first->second.config;
    const auto end =
        std::find_if(first, choices.end(), [&](const auto& size) { return size.second.config != config; });
    text += Row(key, first->first, std::prev(end)->first, config);
    first = end;
  }
  return text;
}

}  // namespace

Result<Exported> ExportTunerTable(const Trace& trace) {
  std::map<Key, ChoicesBySize> table;
  uint64_t without = 0;
  for (const TraceSection& section : trace.sections) {
    const SectionCalls calls = CallsOf(section);
    for (const TraceCall& call : calls.calls) {
      if (!IsRule(call)) {
        ++without;
        continue;
      }
      const CommunicatorInfo& info = calls.communicators.at(call.communicator);
      Choice choice{call.decision->asked_ns, call.decision->config};
      Choice& kept = table[{call.issued.call.collective, info.n_nodes, info.n_ranks}]
                         .try_emplace(call.issued.call.bytes, choice)
                         .first->second;
      if (choice.asked_ns > kept.asked_ns) kept = choice;
    }
  }
  std::string text =
      "# collective_type,min_bytes,max_bytes,algorithm,protocol,channels,nNodes,nRanks,numPipeOps,regBuff\n";
  for (const auto& [key, choices] : table) text += Rows(key, choices);
  Exported exported{{{"", std::move(text)}}, {}};
  if (without > 0)
    exported.notes.push_back(
        fmt::format("{} left out: no tuner chose the algorithm", Counted(without, "call")));
  return exported;
}

}  // namespace dynamiccl
