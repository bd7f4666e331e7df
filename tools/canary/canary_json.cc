// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include "tools/canary/canary_text.h"
#include "tools/canary/cell_json.h"

namespace dynamiccl {
namespace {

Json DifferencesJson(const std::vector<Difference>& differences) {
  Json all = Json::array();
  for (const Difference& one : differences) {
    all.push_back({{"kind", Name(one.kind)},
                   {"gravity", one.gravity == Gravity::kGrave ? "grave" : "notice"},
                   {"before", one.before},
                   {"after", one.after},
                   {"note", one.note},
                   {"size", one.where},
                   {"collectives", one.collectives}});
  }
  return all;
}

const char* KeyOf(Connecting connecting) {
  return connecting == Connecting::kAtInit ? "init" : "first_call";
}

Json CellsJson(const std::vector<JudgedCell>& cells) {
  Json all = Json::array();
  for (const JudgedCell& one : cells) {
    all.push_back({{"connecting", KeyOf(one.connecting)},
                   {"differences", DifferencesJson(one.differences)},
                   {"cell", CellJson(one.cell)}});
  }
  return all;
}

Json ReleaseJson(const std::optional<real_nccl::NcclRelease>& release) {
  return release ? Json(release->text()) : Json();
}

Json ReleasesJson(const std::vector<real_nccl::NcclRelease>& releases) {
  Json all = Json::array();
  for (const real_nccl::NcclRelease& one : releases) all.push_back(one.text());
  return all;
}

Json OrNull(const std::optional<double>& number) {
  return number ? Json(*number) : Json();
}

Json ModelJson(const Traffic& traffic, const std::optional<ModelEffect>& model) {
  if (!model) return {};
  const bool knows_step = model->step_ns_after && traffic.step_ns > 0;
  return {{"release", kModelRelease},
          {"us_in_use", model->us_before},
          {"us_judged", model->us_after},
          {"best_us_in_use", model->best_us_before},
          {"best_us_judged", model->best_us_after},
          {"calls_without_price", model->calls_unpriced},
          {"step_us_in_use", knows_step ? Json(traffic.step_ns / 1000) : Json()},
          {"step_us_judged", knows_step ? Json(*model->step_ns_after / 1000) : Json()},
          {"waits_are_known", model->knows_waits}};
}

Json ClassEffectsJson(const TrafficEffect& effect) {
  Json classes = Json::array();
  for (const ClassEffect& one : effect.classes)
    classes.push_back({{"collective", Name(one.calls.collective)},
                       {"bytes", one.calls.bytes},
                       {"calls", one.calls.calls},
                       {"changes", one.changes()},
                       {"us_in_use", OrNull(one.us_before)},
                       {"us_judged", OrNull(one.us_after)}});
  return classes;
}

Json EffectJson(const std::optional<Traffic>& traffic, const std::optional<TrafficEffect>& effect) {
  if (!effect) return {};
  return {{"classes", ClassEffectsJson(*effect)},
          {"by_one_model", ModelJson(*traffic, effect->model)},
          {"changed_bytes_share", effect->changed_bytes},
          {"changed_time_share", OrNull(effect->changed_time)},
          {"time_is_waited_time", effect->times_are_waits},
          {"calls_without_choice", effect->calls_unknown},
          {"by_table_in_use", effect->by_before},
          {"by_table_judged", effect->by_after},
          {"calls", effect->calls},
          {"us_by_own_table_in_use", effect->own_us_before},
          {"us_by_own_table_judged", effect->own_us_after},
          {"calls_with_other_pair", effect->calls_with_other_pair},
          {"calls_with_other_channels", effect->calls_with_other_channels},
          {"calls_without_price", effect->calls_unpriced}};
}

Json TrafficJson(const std::optional<Traffic>& traffic) {
  if (!traffic) return {};
  Json classes = Json::array();
  for (const TrafficClass& one : traffic->classes)
    classes.push_back({{"collective", Name(one.collective)}, {"bytes", one.bytes}, {"calls", one.calls}});
  return {{"ranks", traffic->ranks},
          {"classes", classes},
          {"calls", traffic->calls},
          {"steps", traffic->steps},
          {"step_us", traffic->step_ns > 0 ? Json(traffic->step_ns / 1000) : Json()},
          {"calls_left_out", traffic->calls_left_out},
          {"calls_without_choice", traffic->calls_without_choice},
          {"other_communicators", traffic->other_communicators}};
}

Json PeriodsJson(const std::vector<FaultPeriod>& periods) {
  Json all = Json::array();
  for (const FaultPeriod& one : periods) {
    Json kinds = Json::array();
    for (const DifferenceKind kind : one.kinds) kinds.push_back(Name(kind));
    all.push_back({{"kinds", kinds},
                   {"first_with", one.releases.first_with.text()},
                   {"last_without", one.releases.last_without.text()},
                   {"last_with", ReleaseJson(one.releases.last_with)},
                   {"free_again", ReleaseJson(one.releases.free_again)},
                   {"not_looked_at", ReleasesJson(one.releases.not_looked_at)},
                   {"not_judged", ReleasesJson(one.releases.hidden)}});
  }
  return all;
}

Json JudgedJson(const CanaryRequest& request, const JudgedRelease& judged) {
  Json issues = Json::array(), remedies = Json::array();
  for (const KnownIssue& issue : judged.issues)
    issues.push_back({{"id", issue.id},
                      {"title", issue.title},
                      {"url", issue.url},
                      {"remedy", issue.remedy},
                      {"not_judged", issue.unjudged}});
  for (const Remedy& remedy : judged.remedies)
    remedies.push_back({{"variable", remedy.variable}, {"value", remedy.value}});
  return {{"release", judged.library.text()},
          {"library", judged.library.folder},
          {"verdict", judged.problem.empty() ? Json(Name(judged.verdict)) : Json()},
          {"problem", judged.problem},
          {"cells", CellsJson(judged.cells)},
          {"traffic", EffectJson(request.traffic, judged.effect)},
          {"periods", PeriodsJson(judged.periods)},
          {"known_issues", issues},
          {"remedies", remedies},
          {"tried", judged.tried}};
}

Json NodesJson(const CanaryRequest& request) {
  Json nodes = Json::array();
  for (const DescribedMachine& one : request.machines)
    nodes.push_back({{"machine", one.name},
                     {"gpus", one.gpus},
                     {"adapters", one.adapters},
                     {"nvlink_domain_nodes", one.nvlink_domain_nodes}});
  return nodes;
}

Json FidelityJson(const std::optional<Fidelity>& fidelity) {
  if (!fidelity) return {};
  return {{"agreements", fidelity->agreements},
          {"not_in_log", fidelity->not_in_log},
          {"variables_missing", fidelity->variables_missing}};
}

std::vector<std::string_view> NamesOf(const std::vector<Collective>& collectives) {
  std::vector<std::string_view> names;
  for (const Collective one : collectives) names.push_back(Name(one));
  return names;
}

}  // namespace

Json CanaryJson(const CanaryRequest& request, const CanaryAnswer& answer) {
  Json judged = Json::array();
  for (const JudgedRelease& one : answer.judged) judged.push_back(JudgedJson(request, one));
  return {{"schema", 1},
          {"machine", MachineNames(request)},
          {"gpus", request.machines.front().gpus},
          {"adapters", request.machines.front().adapters},
          {"nodes", NodesJson(request)},
          {"ranks_of_nodes", request.ranks_of_nodes},
          {"gpus_of_ranks", request.gpus},
          {"collectives", NamesOf(request.collectives)},
          {"traffic", TrafficJson(request.traffic)},
          {"log", FidelityJson(answer.fidelity)},
          {"in_use",
           {{"release", answer.in_use.text()},
            {"library", answer.in_use.folder},
            {"cells", CellsJson(answer.in_use_cells)}}},
          {"judged", judged}};
}

}  // namespace dynamiccl
