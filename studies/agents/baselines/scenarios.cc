// SPDX-License-Identifier: Apache-2.0
// Two experiments on lines of keys: the borders between protocols, and the growth of a job's sizes.
#include "studies/agents/baselines/scenarios.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <functional>
#include <iterator>
#include <map>

#include "agents/evaluation/policy_choosers.h"
#include "src/base/statistics.h"
#include "src/policy/config_inference.h"
#include "studies/agents/baselines/config_baselines.h"
#include "studies/agents/baselines/config_baselines_probing.h"

namespace dynamiccl::agents {
namespace {

// The regret up to which a choice is good.
constexpr double kGood = 0.05;
// Number of sizes that a line needs to have meaningful borders.
constexpr size_t kLeastSizesOfBorders = 8;
// The log time of a protocol that was not measured at a key: larger than any real one.
constexpr double kUnknown = 100;

// A cost for each Protocol.
using ProtocolCosts = std::array<double, kProtocols>;

double LogTime(const SweptConfig& swept) {
  return (std::log(swept.time.pick) + std::log(swept.time.value)) / 2;
}

// The log time of each protocol's best configuration.
ProtocolCosts TimesOf(const SweptKey& key) {
  ProtocolCosts costs;
  costs.fill(kUnknown);
  for (const SweptConfig& swept : key.configs) {
    double& cost = costs[static_cast<size_t>(swept.config.protocol)];
    cost = std::min(cost, LogTime(swept));
  }
  return costs;
}

double CostOf(const std::vector<ProtocolCosts>& line, const Borders& borders) {
  double sum = 0;
  for (size_t i = 0; i < line.size(); ++i) {
    const Protocol protocol = i < borders.ll_ends         ? Protocol::kLL
                              : i < borders.simple_begins ? Protocol::kLL128
                                                          : Protocol::kSimple;
    sum += line[i][static_cast<size_t>(protocol)];
  }
  return sum;
}

// Returns the cheapest pair of borders, and the first one among equals.
Borders CheapestBorders(const std::vector<ProtocolCosts>& line) {
  Borders best;
  double least = CostOf(line, best);
  for (size_t first = 0; first <= line.size(); ++first) {
    for (size_t second = first; second <= line.size(); ++second) {
      const double cost = CostOf(line, {first, second});
      if (cost >= least) continue;
      least = cost;
      best = {first, second};
    }
  }
  return best;
}

std::vector<ProtocolCosts> TimesOf(const KeyLine& line) {
  std::vector<ProtocolCosts> times;
  for (const SweptKey* key : line) times.push_back(TimesOf(*key));
  return times;
}

void AddBorder(size_t own, size_t best, size_t places, size_t border, BorderResult& result) {
  if (best == 0 || best == places) return;
  ++result.lines[border];
  const size_t apart = own > best ? own - best : best - own;
  result.within_one_class[border] += apart <= 1 ? 1 : 0;
}

double RegretOf(const SweptKey& key, const CollectiveConfig& config) {
  return ValueOf(key, config) / ValueOf(key, OracleChoice(key)) - 1;
}

// Adds one change to the result. `choices` are the configurations in use, each with the first call from which
// on it is in use.
void AddGrowth(const SweptKey& key, const std::vector<ChoiceFrom>& choices, std::vector<double>& good_from,
               GrowthResult& result) {
  int good = 1;
  double early = 0;
  for (size_t i = 0; i < choices.size(); ++i) {
    const int end = i + 1 < choices.size() ? choices[i + 1].call : kProbingCalls + 1;
    const double regret = RegretOf(key, choices[i].config);
    if (regret > kGood) good = end;
    early += regret * std::max(0, std::min(end, kEarlyCalls + 1) - choices[i].call);
  }
  ++result.changes;
  result.ready += good == 1 ? 1 : 0;
  result.never += good > kProbingCalls ? 1 : 0;
  result.early_regret += early / kEarlyCalls;
  good_from.push_back(good);
}

// Returns `first` until `call`, and `later` from then on.
std::vector<ChoiceFrom> After(const CollectiveConfig& first, int call, const std::vector<ChoiceFrom>& later) {
  std::vector<ChoiceFrom> choices{{1, first}};
  for (ChoiceFrom choice : later) {
    choice.call += call - 1;
    if (choice.call <= kProbingCalls) choices.push_back(choice);
  }
  return choices;
}

// One change of sizes: from the key `before` to the key `now`.
struct Growth {
  const SweptKey& before;
  const SweptKey& now;
  uint64_t seed;
};

std::vector<ChoiceFrom> SearchedFromPolicy(const Policy& policy, const SweptKey& key, uint64_t seed) {
  return SearchedChoices(policy, key, ChooseConfig(policy, key.model, key.question).config, seed);
}

// Continues from the final config of the search at the former size.
std::vector<ChoiceFrom> Carried(const Policy& policy, const Growth& growth) {
  const CollectiveConfig settled = SearchedFromPolicy(policy, growth.before, growth.seed + 1).back().config;
  return SearchedChoices(policy, growth.now, settled, growth.seed);
}

// A way in which choices come about.
struct Way {
  const char* name;
  std::vector<ChoiceFrom> (*choices)(const Policy& policy, const Growth& growth);
};
// The ways that are compared, from doing nothing to searching with a signal that announces the new size
// (JudgeGrowth).
constexpr Way kWays[] = {
    {"NCCL's own choice",
     [](const Policy&, const Growth&) {
       return std::vector<ChoiceFrom>{{1, kLeaveNcclAlone}};
     }},
    {"frozen",
     [](const Policy& policy, const Growth& growth) {
       const auto chosen = ChooseConfig(policy, growth.now.model, growth.now.question).config;
       return After(kLeaveNcclAlone, 2, {{1, chosen}});
     }},
    {"frozen, with the signal",
     [](const Policy& policy, const Growth& growth) {
       const auto chosen = ChooseConfig(policy, growth.now.model, growth.now.question).config;
       return std::vector<ChoiceFrom>{{1, chosen}};
     }},
    {"adaptive",
     [](const Policy& policy, const Growth& growth) {
       return After(kLeaveNcclAlone, 2, SearchedFromPolicy(policy, growth.now, growth.seed));
     }},
    {"adaptive, with the signal",
     [](const Policy& policy, const Growth& growth) {
       return SearchedFromPolicy(policy, growth.now, growth.seed);
     }},
    {"adaptive, the former size's settled choice carried over",
     [](const Policy& policy, const Growth& growth) {
       return After(kLeaveNcclAlone, kEarlyCalls, Carried(policy, growth));
     }},
    {"adaptive, carried over before the change",
     [](const Policy& policy, const Growth& growth) {
       return After(kLeaveNcclAlone, 2, Carried(policy, growth));
     }},
    {"adaptive, carried over, with the signal",
     [](const Policy& policy, const Growth& growth) { return Carried(policy, growth); }},
};

std::vector<Growth> GrowthsOf(const std::vector<KeyLine>& lines, const SizeChange& change, uint64_t seed) {
  std::vector<Growth> growths;
  for (const KeyLine& line : lines) {
    for (const SweptKey* now : line) {
      for (const SweptKey* before : line) {
        if (before->question.bytes * change.to == now->question.bytes * change.from)
          growths.push_back({*before, *now, seed * 1000003 + 2 * growths.size()});
      }
    }
  }
  return growths;
}

std::string FormatBorders(const std::vector<BorderResult>& results) {
  std::string text =
      "| who | LL's end within one class | Simple's begin within one class | mean loss by the borders |\n"
      "|---|---|---|---|\n";
  for (const BorderResult& result : results)
    text += fmt::format("| {} | {} of {} | {} of {} | {:.1f} % |\n", result.chooser,
                        result.within_one_class[0], result.lines[0], result.within_one_class[1],
                        result.lines[1], 100 * std::expm1(result.loss));
  return text;
}

std::string FormatGrowth(const SizeChange& change, const std::vector<GrowthResult>& results) {
  std::string text = fmt::format(
      "\n{} changes to calls {}/{} as large\n\n| way | good from the first call on | call, p75 | never "
      "| "
      "mean regret of the first {} calls |\n|---|---|---|---|---|\n",
      results.front().changes, change.to, change.from, kEarlyCalls);
  for (const GrowthResult& result : results) {
    const double all = static_cast<double>(result.changes) / 100;
    text += fmt::format("| {} | {:.1f} % | {:.0f} | {:.1f} % | {:.1f} % |\n", result.way,
                        static_cast<double>(result.ready) / all, result.p75_call,
                        static_cast<double>(result.never) / all, 100 * result.early_regret);
  }
  return text;
}

}  // namespace

std::vector<KeyLine> LinesOf(const std::vector<SweptKey>& keys, size_t least_sizes) {
  std::map<std::pair<std::string, Collective>, KeyLine> named;
  for (const SweptKey& key : keys) {
    if (key.default_choice) named[{key.topology, key.question.collective}].push_back(&key);
  }
  std::vector<KeyLine> lines;
  for (auto& [name, line] : named) {
    std::sort(line.begin(), line.end(),
              [](const SweptKey* a, const SweptKey* b) { return a->question.bytes < b->question.bytes; });
    if (line.size() >= least_sizes) lines.push_back(std::move(line));
  }
  return lines;
}

Borders BestBorders(const KeyLine& line) {
  return CheapestBorders(TimesOf(line));
}

Borders BordersOf(const KeyLine& line, const Chooser& chooser) {
  std::vector<ProtocolCosts> contradictions;
  for (const SweptKey* key : line) {
    CollectiveConfig config = chooser.choose(*key);
    if (config.leaves_nccl_alone()) config = key->default_choice->config;
    ProtocolCosts& costs = contradictions.emplace_back();
    costs.fill(1);
    costs[static_cast<size_t>(config.protocol)] = 0;
  }
  return CheapestBorders(contradictions);
}

std::vector<BorderResult> JudgeBorders(const std::vector<KeyLine>& lines,
                                       const std::vector<Chooser>& choosers) {
  std::vector<BorderResult> results;
  for (const Chooser& chooser : choosers) {
    BorderResult& result = results.emplace_back();
    result.chooser = chooser.name;
    for (const KeyLine& line : lines) {
      const std::vector<ProtocolCosts> times = TimesOf(line);
      const Borders best = CheapestBorders(times), own = BordersOf(line, chooser);
      AddBorder(own.ll_ends, best.ll_ends, line.size(), 0, result);
      AddBorder(own.simple_begins, best.simple_begins, line.size(), 1, result);
      const auto all = static_cast<double>(line.size() * lines.size());
      result.loss += (CostOf(times, own) - CostOf(times, best)) / all;
    }
  }
  return results;
}

std::vector<GrowthResult> JudgeGrowth(const Policy& policy, const std::vector<KeyLine>& lines,
                                      const SizeChange& change, uint64_t seed) {
  const std::vector<Growth> growths = GrowthsOf(lines, change, seed);
  std::vector<GrowthResult> results;
  if (growths.empty()) return results;
  for (const Way& way : kWays) {
    GrowthResult& result = results.emplace_back();
    result.way = way.name;
    std::vector<double> good_from;
    for (const Growth& growth : growths)
      AddGrowth(growth.now, way.choices(policy, growth), good_from, result);
    result.early_regret /= static_cast<double>(growths.size());
    result.p75_call = QuantileInPlace(good_from, 0.75);
  }
  return results;
}

std::string FormatScenarios(const Policy& policy, const std::vector<SweptKey>& keys) {
  std::string text;
  const std::vector<KeyLine> fine = LinesOf(keys, kLeastSizesOfBorders);
  if (!fine.empty()) {
    std::vector<Chooser> choosers{{"NCCL's own choice", [](const SweptKey&) { return kLeaveNcclAlone; }},
                                  {"best of each key by half of the repeats", OracleChoice}};
    for (auto& more : {PolicyChoosers(policy), ProbingChoosers(policy, keys, 1)})
      std::copy(more.begin(), more.end(), std::back_inserter(choosers));
    text += fmt::format("{} lines of a topology and a collective\n\n{}", fine.size(),
                        FormatBorders(JudgeBorders(fine, choosers)));
  }
  const std::vector<KeyLine> lines = LinesOf(keys, 2);
  for (const SizeChange& change : {SizeChange{1, 2}, {1, 4}, {1, 16}, {2, 1}, {4, 1}}) {
    const std::vector<GrowthResult> results = JudgeGrowth(policy, lines, change, 1);
    if (!results.empty()) text += FormatGrowth(change, results);
  }
  return text;
}

}  // namespace dynamiccl::agents
