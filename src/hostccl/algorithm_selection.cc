// SPDX-License-Identifier: Apache-2.0
// Parses a call's algSelection (grammar: call_choice.h) into a set of NCCL's names, and turns the set into
// pairs of algorithm and protocol, the entries of the cost table.
#include "src/hostccl/call_choice.h"

#include <strings.h>

#include <array>
#include <bitset>
#include <string>
#include <vector>

namespace dynamiccl::hostccl {
namespace {

// One name that an algSelection can use. A symmetric kernel has no pair in the cost table, so its algorithm
// and protocol are kUndefined.
struct NamedAlgorithm {
  std::string_view name;
  Algorithm algorithm = Algorithm::kUndefined;
  Protocol protocol = Protocol::kUndefined;
  Collective collective = Collective::kAllReduce;  // the collective of a symmetric kernel
};

// Makes the entry for the symmetric kernel of one collective.
constexpr NamedAlgorithm Symmetric(std::string_view name, Collective collective) {
  return {name, Algorithm::kUndefined, Protocol::kUndefined, collective};
}

// All names that NCCL 2.32 accepts.
constexpr std::array kNamed = {
    NamedAlgorithm{"TREE_LL", Algorithm::kTree, Protocol::kLL},
    NamedAlgorithm{"TREE_LL128", Algorithm::kTree, Protocol::kLL128},
    NamedAlgorithm{"TREE_SIMPLE", Algorithm::kTree, Protocol::kSimple},
    NamedAlgorithm{"RING_LL", Algorithm::kRing, Protocol::kLL},
    NamedAlgorithm{"RING_LL128", Algorithm::kRing, Protocol::kLL128},
    NamedAlgorithm{"RING_SIMPLE", Algorithm::kRing, Protocol::kSimple},
    NamedAlgorithm{"COLLNET_DIRECT_SIMPLE", Algorithm::kCollnetDirect, Protocol::kSimple},
    NamedAlgorithm{"COLLNET_CHAIN_SIMPLE", Algorithm::kCollnetChain, Protocol::kSimple},
    NamedAlgorithm{"NVLS_SIMPLE", Algorithm::kNvls, Protocol::kSimple},
    NamedAlgorithm{"NVLSTREE_SIMPLE", Algorithm::kNvlsTree, Protocol::kSimple},
    NamedAlgorithm{"PAT_SIMPLE", Algorithm::kPat, Protocol::kSimple},
    Symmetric("SYMK_AGxLL_R", Collective::kAllReduce),
    Symmetric("SYMK_AGxLLMC_R", Collective::kAllReduce),
    Symmetric("SYMK_RSxTmaLD_AGxTmaST", Collective::kAllReduce),
    Symmetric("SYMK_RSxLD_AGxST", Collective::kAllReduce),
    Symmetric("SYMK_RSxLDMC_AGxSTMC", Collective::kAllReduce),
    Symmetric("SYMK_LL", Collective::kAllGather),
    Symmetric("SYMK_LLMC", Collective::kAllGather),
    Symmetric("SYMK_TmaST", Collective::kAllGather),
    Symmetric("SYMK_ST", Collective::kAllGather),
    Symmetric("SYMK_TmaSTMC", Collective::kAllGather),
    Symmetric("SYMK_STMC", Collective::kAllGather),
    Symmetric("SYMK_RailRing_LsaSTMC", Collective::kAllGather),
    Symmetric("SYMK_LL", Collective::kReduceScatter),
    Symmetric("SYMK_TmaLD", Collective::kReduceScatter),
    Symmetric("SYMK_LD", Collective::kReduceScatter),
    Symmetric("SYMK_LDMC", Collective::kReduceScatter),
    Symmetric("SYMK_RailA2A_LsaLD", Collective::kReduceScatter),
    Symmetric("SYMK_RailA2A_LsaLDMC", Collective::kReduceScatter),
};

using NameSet = std::bitset<kNamed.size()>;

// Splits the text at the separator and drops empty parts, as strtok does.
std::vector<std::string_view> Parts(std::string_view text, char separator) {
  std::vector<std::string_view> parts;
  for (size_t begin = 0; begin < text.size();) {
    const size_t end = std::min(text.find(separator, begin), text.size());
    if (end > begin) parts.push_back(text.substr(begin, end - begin));
    begin = end + 1;
  }
  return parts;
}

// Returns all names that begin with this tag.
NameSet NamesOf(std::string_view tag) {
  NameSet names;
  for (size_t i = 0; i < kNamed.size() && !tag.empty(); ++i) {
    const std::string_view name = kNamed[i].name;
    names.set(i, tag.size() <= name.size() && ::strncasecmp(name.data(), tag.data(), tag.size()) == 0);
  }
  return names;
}

// Returns the names that satisfy all factors of a term; empty if the term does not parse.
NameSet ParseTerm(std::string_view term) {
  const std::vector<std::string_view> factors = Parts(term, '+');
  NameSet names;
  if (!factors.empty()) names.set();
  for (const std::string_view factor : factors) {
    const bool all_but = factor.front() == '^';
    const NameSet tagged = NamesOf(factor.substr(all_but ? 1 : 0));
    if (tagged.none()) return {};
    names &= all_but ? ~tagged : tagged;
  }
  return names;
}

}  // namespace

// White space is removed first, as in NCCL. Names of other collectives' kernels are valid but select nothing.
std::optional<AlgorithmSelection> ParseAlgorithmSelection(std::string_view text, Collective collective) {
  std::string packed;
  for (const char letter : text) {
    if (std::string_view(" \t\r\n").find(letter) == std::string_view::npos) packed.push_back(letter);
  }
  NameSet names;
  for (const std::string_view term : Parts(packed, ',')) {
    const NameSet of_term = ParseTerm(term);
    if (of_term.none()) return {};
    names |= of_term;
  }
  AlgorithmSelection selection;
  for (size_t i = 0; i < kNamed.size(); ++i) {
    const NamedAlgorithm& named = kNamed[i];
    if (!names.test(i)) continue;
    if (named.algorithm == Algorithm::kUndefined) {
      selection.symmetric |= named.collective == collective;
    } else {
      selection.configs.set(ConfigIndex(named.algorithm, named.protocol));
    }
  }
  selection.configs &= NcclConfigs(collective);
  return selection;
}

}  // namespace dynamiccl::hostccl
