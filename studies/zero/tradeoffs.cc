// SPDX-License-Identifier: Apache-2.0
// The table of choices, their measurement and their output.
#include "studies/zero/tradeoffs.h"

#include <algorithm>

#include "src/base/statistics.h"

namespace dynamiccl {
namespace {

constexpr double kMebibyte = 1024.0 * 1024.0;

// Sum of the peaks of these memory categories.
double Mebibytes(const TrainerReport& report, std::initializer_list<const char*> categories) {
  int64_t bytes = 0;
  for (const char* category : categories) {
    const auto found = report.peak_bytes.find(category);
    if (found != report.peak_bytes.end()) bytes += found->second;
  }
  return static_cast<double>(bytes) / kMebibyte;
}

std::string Row(const std::string& choice, const MeasuredArm& arm) {
  const TrainerReport& report = arm.report;
  return fmt::format(
      "{:<17} {:<26} {:>8.2f} {:>17} {:>8.2f} {:>7.2f} {:>7.2f} {:>7.2f} {:>7.2f} {:>7.2f} {:>7.2f} "
      "{:>7.2f}\n",
      choice, arm.arm.name, arm.Median(), fmt::format("{:.2f} to {:.2f}", arm.Least(), arm.Most()),
      Mebibytes(report, {"total"}), Mebibytes(report, {"parameters"}), Mebibytes(report, {"gradients"}),
      Mebibytes(report, {"master", "moments", "offload"}), Mebibytes(report, {"buckets"}),
      Mebibytes(report, {"gathered"}), Mebibytes(report, {"activations_kept", "checkpoints"}),
      report.sent_bytes_a_step / kMebibyte);
}

Json ToJson(const MeasuredArm& arm) {
  return {{"name", arm.arm.name},
          {"options", arm.arm.options},
          {"step_ms", arm.Median()},
          {"step_ms_of_rounds", arm.step_ms},
          {"peak_bytes", arm.report.peak_bytes},
          {"sent_bytes_a_step", arm.report.sent_bytes_a_step}};
}

// Returns the index of the arm with these options. Adds the arm if there is none.
size_t Place(std::vector<MeasuredArm>& arms, const TrainerArm& arm) {
  const auto same = [&](const MeasuredArm& other) { return other.arm.options == arm.options; };
  const auto found = std::find_if(arms.begin(), arms.end(), same);
  if (found != arms.end()) return static_cast<size_t>(found - arms.begin());
  arms.push_back({.arm = arm});
  return arms.size() - 1;
}

}  // namespace

std::vector<Tradeoff> Tradeoffs(const TradeoffSettings& settings, const std::string& folder, int ranks) {
  const auto stage = [&](const char* number, std::vector<std::string> more = {}) {
    more.insert(more.end(), {"--stage", number, "--bucket-bytes", settings.bucket_bytes});
    return more;
  };
  const std::vector<std::string> checkpointed = {"--activation-checkpoints", "full"};
  std::vector<std::string> pooled = checkpointed;
  pooled.push_back("--contiguous-pools");
  std::vector<Tradeoff> all = {
      {"activations", {"kept", stage("2")}, {"computed again", stage("2", checkpointed)}},
      {"buffers", {"one for all gradients", {"--stage", "2", "--bucket-bytes", "all"}}, {"C_B", stage("2")}},
      {"fragmentation", {"accepted", stage("1", checkpointed)}, {"M_D", stage("1", pooled)}},
      {"optimizer states",
       {"in memory", stage("2")},
       {"in files", stage("2", {"--offload-optimizer", "nvme:" + folder})}},
  };
  if (ranks == 1) return all;
  if (ranks % 2 == 0) {
    const auto checkpoints = [&](const char* kind) {
      return stage("2", {"--tensor-parallel", "2", "--activation-checkpoints", kind});
    };
    all.push_back({"checkpoints",
                   {"replicated", checkpoints("full")},
                   {"partitioned (P_a)", checkpoints("partitioned")}});
  }
  const std::vector<Tradeoff> divided = {
      {"optimizer states", {"replicated", stage("0")}, {"partitioned", stage("1")}},
      {"gradient sums", {"AllReduce", stage("0")}, {"ReduceScatter", stage("2")}},
      {"bucket size",
       {"one for each parameter", {"--stage", "2", "--unit", "parameter"}},
       {"C_B", stage("2")}},
      {"reduction", {"after backward", stage("2", {"--no-overlap"})}, {"during backward", stage("2")}},
      {"parameters", {"replicated", stage("2")}, {"gathered on demand", stage("3")}},
      {"gather", {"when it is needed", stage("3", {"--no-prefetch"})}, {"one unit ahead", stage("3")}},
  };
  all.insert(all.begin(), divided.begin(), divided.end());
  return all;
}

Result<std::vector<MeasuredTradeoff>> MeasureTradeoffs(TrainerRuns& runs, const TradeoffSettings& settings,
                                                       const std::function<void(const std::string&)>& say) {
  const std::vector<Tradeoff> tradeoffs = Tradeoffs(settings, runs.folder(), runs.ranks());
  std::vector<MeasuredArm> arms;
  std::vector<std::pair<size_t, size_t>> places;
  for (const Tradeoff& one : tradeoffs) {
    const size_t without = Place(arms, one.without);
    places.emplace_back(without, Place(arms, one.with));
  }
  DYNAMICCL_CHECK_OK(MeasureArms(runs, settings.options, settings.rounds, arms, say));
  std::vector<MeasuredTradeoff> measured;
  for (size_t i = 0; i < tradeoffs.size(); ++i) {
    measured.push_back({tradeoffs[i].choice, arms[places[i].first], arms[places[i].second]});
    // An arm that serves several choices has another name in each.
    measured.back().without.arm.name = tradeoffs[i].without.name;
    measured.back().with.arm.name = tradeoffs[i].with.name;
  }
  return measured;
}

std::string TradeoffTable(const std::vector<MeasuredTradeoff>& tradeoffs) {
  std::string text =
      fmt::format("{:<44} {:>8} {:>17} {:>8} {:>7} {:>7} {:>7} {:>7} {:>7} {:>7} {:>7}\n", "", "step ms",
                  "rounds", "peak MiB", "param.", "grad.", "optim.", "buckets", "gather.", "activ.", "sent");
  for (const MeasuredTradeoff& one : tradeoffs) {
    text += Row(one.choice, one.without) + Row("", one.with);
    text += fmt::format("{:<44} {:>7.2f}x {:>17} {:>7.2f}x\n", "", one.with.Median() / one.without.Median(),
                        "", Mebibytes(one.with.report, {"total"}) / Mebibytes(one.without.report, {"total"}));
  }
  return text;
}

Json TradeoffsJson(const std::vector<MeasuredTradeoff>& tradeoffs) {
  Json rows = Json::array();
  for (const MeasuredTradeoff& one : tradeoffs) {
    rows.push_back({{"choice", one.choice}, {"without", ToJson(one.without)}, {"with", ToJson(one.with)}});
  }
  return rows;
}

}  // namespace dynamiccl
