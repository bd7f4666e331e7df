// SPDX-License-Identifier: Apache-2.0
// Judges each setting by the calls that it must change: buckets by the AllReduces of a step, a static graph
// by an AllReduce that the reducer makes only once, resharding by the AllGathers of a step beside its
// ReduceScatters, prefetching by the gathers that come before a module computes or before a ReduceScatter,
// units of several modules by the number of ReduceScatters, and hybrid sharding by the communicators.
// Gradients that are views of buckets change no call; they lie in pieces of memory of the AllReduces' sizes.
#include "tools/tune/setting_receipt.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "tools/tune/deepspeed_settings.h"
#include "tools/tune/judgement.h"

namespace dynamiccl {
namespace {

// Communication hooks that compress gradients send a half or a quarter of a bucket's bytes.
constexpr uint64_t kBytesDividedBy[] = {1, 2, 4};

using SizeCounts = std::map<uint64_t, size_t>;

SizeCounts AllReducesOf(const RecordedStep& step) {
  SizeCounts counts;
  for (const WireOperation& operation : step.operations)
    if (operation.collective == Collective::kAllReduce) ++counts[operation.Bytes()];
  return counts;
}

// True if the AllReduces of a step have the sizes of the buckets, and each bucket occurs equally often (once
// for each backward pass that synchronises). A step may also have other AllReduces: any that are smaller than
// the smallest bucket, such as losses, and larger ones with together less than a tenth of the buckets' bytes,
// such as the statistics of SyncBatchNorm.
bool AreTheBuckets(const SizeCounts& calls, const std::vector<uint64_t>& buckets, uint64_t divided_by) {
  SizeCounts expected;
  for (const uint64_t bucket : buckets) ++expected[bucket / divided_by];
  const auto first = calls.find(expected.begin()->first);
  const size_t passes = first == calls.end() ? 0 : first->second / expected.begin()->second;
  if (passes == 0) return false;
  uint64_t of_buckets = 0, of_others = 0;
  for (const auto& [bytes, count] : calls) {
    const auto bucket = expected.find(bytes);
    if (bucket != expected.end() && count != passes * bucket->second) return false;
    if (bucket != expected.end())
      of_buckets += bytes * count;
    else if (bytes >= expected.begin()->first)
      of_others += bytes * count;
  }
  return 10 * of_others < of_buckets &&
         std::ranges::all_of(expected, [&](const auto& bucket) { return calls.contains(bucket.first); });
}

Judgement JudgeBuckets(const HookReport& report, const RecordedStep& step) {
  const std::string calls = Counted(CountOf(step, Collective::kAllReduce), "AllReduce") + " a step";
  if (!report.ddp || report.ddp->buckets.empty())
    return NotProvable(calls + "; this torch does not tell its buckets");
  const std::vector<uint64_t>& buckets = report.ddp->buckets;
  const bool same = std::ranges::any_of(kBytesDividedBy, [&](uint64_t divided_by) {
    return AreTheBuckets(AllReducesOf(step), buckets, divided_by);
  });
  const std::string seen = calls + ", " + Counted(buckets.size(), "bucket");
  if (same) return InEffect(seen);
  // Some of several objects may not train in this step.
  if (report.ddp->constructed > 1)
    return NotProvable(
        fmt::format("the framework has it; {} of {} objects of DDP", seen, report.ddp->constructed));
  return NotInEffect(seen + ": the gradients do not travel in DDP's buckets");
}

Judgement JudgeReshard(bool asked, const HookReport& report, const RecordedStep& step) {
  std::string seen = Counted(CountOf(step, Collective::kAllGather), "AllGather") + " and " +
                     Counted(CountOf(step, Collective::kReduceScatter), "ReduceScatter") + " a step";
  if (report.fsdp2 && report.fsdp2->passes > 1) seen += fmt::format(" of {} passes", report.fsdp2->passes);
  const std::optional<bool> again = GathersAgain(report.fsdp2.value_or(Fsdp2Report()), step);
  if (!again) return NotProvable(seen);
  if (*again == asked) return InEffect(seen);
  return NotInEffect(seen + (*again ? ": parameters are gathered again" : ": nothing is gathered again"));
}

std::string Each(const char* noun, size_t count) {
  return count == 1 ? fmt::format("one {}", noun) : fmt::format("{} {}s", count, noun);
}

// Judges a static graph by the reducer's AllReduce that counts which parameters were used: one int32 for each
// parameter. With a static graph it comes in the first backward pass only. Without a static graph it never
// comes, or, with find_unused_parameters, in each pass.
Judgement JudgeStaticGraph(bool asked, const HookReport& report, const RecordedStep& step) {
  if (!report.ddp || report.ddp->parameters.empty() || report.ddp->constructed != 1 || !step.int32_reduces)
    return NotProvable("the framework has it; of its first backward pass no calls are known");
  const auto parameters = static_cast<int64_t>(report.ddp->parameters.size());
  const auto found = step.int32_reduces->find(parameters);
  const size_t count = found == step.int32_reduces->end() ? 0 : found->second;
  const std::string seen = fmt::format("{} of the {} parameters' use", Each("AllReduce", count), parameters);
  return (count == 1) == asked ? InEffect(seen) : NotInEffect(seen);
}

// Judges whether gradients are views of buckets by the memory in which they lie.
Judgement JudgeBucketViews(bool asked, const HookReport& report, const RecordedStep& step) {
  if (!report.ddp || report.ddp->gradient_pieces.empty())
    return NotProvable("the framework has it; no optimizer stepped");
  std::vector<uint64_t> buckets = report.ddp->buckets, parameters = report.ddp->parameters;
  std::ranges::sort(buckets);
  std::ranges::sort(parameters);
  const std::vector<uint64_t>& pieces = report.ddp->gradient_pieces;
  if (buckets == parameters) return NotProvable("each bucket has one parameter");
  const std::string seen =
      fmt::format("gradients lie in {}, DDP has {}", Each("piece", pieces.size()) + " of memory",
                  Each("bucket", buckets.size()));
  if (!asked) return pieces == buckets ? NotInEffect(seen) : InEffect(seen);
  const Judgement travels = JudgeBuckets(report, step);
  if (travels.standing != SettingStanding::kInEffect) return travels;
  return pieces == buckets ? InEffect(seen + " of these sizes") : NotInEffect(seen);
}

// Number of modules that gather parameters in a forward pass: all wrapped ones, or all but the outermost if
// it has no parameters of its own. 0: the step's ReduceScatters fit neither.
size_t GatheringModules(const Fsdp2Report& report, const RecordedStep& step) {
  const size_t scatters = CountOf(step, Collective::kReduceScatter);
  const auto wrapped = static_cast<size_t>(std::max(0, report.wrapped));
  for (const size_t modules : {wrapped, wrapped - 1})
    if (wrapped > 1 && scatters > 0 && scatters % modules == 0) return modules;
  return 0;
}

// Judges the prefetch depth by the gathers of the forward passes that come before the second wrapped module
// computes: in each pass those of the outermost module and of the second one, and of as many more as are
// prefetched. The hook marks these calls as forward ones.
Judgement JudgeForwardPrefetch(int depth, const HookReport& report, const RecordedStep& step) {
  const auto ahead = static_cast<size_t>(std::ranges::count_if(step.operations, [](const WireOperation& one) {
    return one.collective == Collective::kAllGather && one.phase == Phase::kForward;
  }));
  const size_t modules = report.fsdp2 ? GatheringModules(*report.fsdp2, step) : 0;
  if (ahead == 0 || modules == 0) return NotProvable("the framework has it; its modules do not gather alike");
  const size_t own = modules == static_cast<size_t>(report.fsdp2->wrapped) ? 2 : 1;
  const size_t of_pass = std::min(modules, own + static_cast<size_t>(depth));
  const size_t expected = static_cast<size_t>(report.fsdp2->passes) * of_pass;
  const std::string seen = fmt::format("{} before the second module computes", Each("AllGather", ahead));
  // A script may keep the parameters gathered between passes; then the first pass alone gathers ahead.
  return ahead == expected || ahead == of_pass ? InEffect(seen)
                                               : NotInEffect(fmt::format("{}, not {}", seen, expected));
}

// True if the outermost module gathers its parameters again in the backward pass, which then begins with this
// gather. Usually the outermost module keeps them.
bool OutermostGathersAgain(const HookReport& report, const RecordedStep& step) {
  const size_t modules = CountOf(step, Collective::kReduceScatter);
  std::vector<int64_t> gathered;
  for (const WireOperation& one : step.operations)
    if (one.collective == Collective::kAllGather) gathered.push_back(one.elements);
  return report.fsdp2 && static_cast<size_t>(report.fsdp2->wrapped) == modules &&
         gathered.size() == 2 * modules && gathered[modules] == gathered.front();
}

// Judges the prefetch depth by the gathers before the first ReduceScatter of the backward pass. This needs
// marked steps, because otherwise it is unknown with which call a step begins.
Judgement JudgeBackwardPrefetch(int depth, const HookReport& report, const RecordedStep& step) {
  const auto is = [](Collective collective) {
    return [collective](const WireOperation& operation) { return operation.collective == collective; };
  };
  const auto first = std::ranges::find_if(step.operations, is(Collective::kReduceScatter));
  const auto before = std::count_if(step.operations.begin(), first, is(Collective::kAllGather));
  const auto wrapped = static_cast<std::ptrdiff_t>(CountOf(step, Collective::kReduceScatter));
  const auto gathers = static_cast<std::ptrdiff_t>(CountOf(step, Collective::kAllGather));
  if (!step.marked || gathers <= wrapped) return NotProvable("nothing is gathered in the backward pass");
  if (report.fsdp2 && report.fsdp2->passes > 1)
    return NotProvable(
        fmt::format("a step has {} passes, and only the last one scatters", report.fsdp2->passes));
  const std::string seen =
      fmt::format("{} AllGathers of the backward pass before its first ReduceScatter", before - wrapped);
  const int own = OutermostGathersAgain(report, step) ? 2 : 1;
  const std::ptrdiff_t expected = std::min<std::ptrdiff_t>(own + std::max(depth, 1), gathers - wrapped);
  return before - wrapped == expected ? InEffect(seen)
                                      : NotInEffect(fmt::format("{}, not {}", seen, expected));
}

// Judges the grouping of modules by the ReduceScatters: one for each unit and backward pass.
Judgement JudgeUnits(const HookReport& report, const RecordedStep& step) {
  const size_t scatters = CountOf(step, Collective::kReduceScatter);
  if (!report.fsdp2 || scatters == 0)
    return NotProvable("the framework has it; no ReduceScatter was recorded");
  const std::string seen = fmt::format("{} a step, {} of at most {}", Counted(scatters, "ReduceScatter"),
                                       Counted(static_cast<size_t>(report.fsdp2->wrapped), "unit"),
                                       Counted(static_cast<size_t>(report.fsdp2->largest_unit), "module"));
  if (report.fsdp2->wrapped < 2) return NotProvable(seen);
  return GatheringModules(*report.fsdp2, step) != 0 ? InEffect(seen) : NotInEffect(seen);
}

// Judges hybrid sharding by the communicators that gather and scatter, and by those that sum between groups.
Judgement JudgeShardRanks(int asked, const RecordedStep& step) {
  const auto between = std::ranges::count_if(step.operations, [](const WireOperation& one) {
    return one.collective == Collective::kAllReduce && one.axis == Axis::kReplicate;
  });
  if (step.shard_ranks == 0)
    return NotInEffect(fmt::format("states are divided over all {} ranks", step.ranks));
  const std::string seen =
      fmt::format("states are divided over {} of {} ranks, {} a step between groups", step.shard_ranks,
                  step.ranks, Counted(static_cast<size_t>(between), "AllReduce"));
  return step.shard_ranks == asked && between > 0 ? InEffect(seen) : NotInEffect(seen);
}

Judgement JudgeByCalls(const std::string& setting, const Json& asked, const HookReport& report,
                       const RecordedStep& step) {
  if (setting.starts_with("deepspeed.") && report.deepspeed)
    return JudgeDeepSpeed(setting, asked, *report.deepspeed, step);
  if (setting == "ddp.bucket_cap_mb" || setting == "ddp.first_bucket_mb") return JudgeBuckets(report, step);
  if (setting == "fsdp2.reshard_after_forward") return JudgeReshard(asked.get<bool>(), report, step);
  if (setting == "ddp.static_graph") return JudgeStaticGraph(asked.get<bool>(), report, step);
  if (setting == "ddp.gradient_as_bucket_view") return JudgeBucketViews(asked.get<bool>(), report, step);
  if (setting == "fsdp2.forward_prefetch") return JudgeForwardPrefetch(asked.get<int>(), report, step);
  if (setting == "fsdp2.backward_prefetch") return JudgeBackwardPrefetch(asked.get<int>(), report, step);
  if (setting == "fsdp2.modules_per_unit") return JudgeUnits(report, step);
  if (setting == "fsdp2.shard_ranks") return JudgeShardRanks(asked.get<int>(), step);
  return NotProvable("the framework has it; it changes no call");
}

// The framework keeps a size in whole bytes, so a fraction of a megabyte comes back rounded.
bool SameValue(const Json& asked, const Json& in_effect) {
  if (!asked.is_number() || !in_effect.is_number()) return asked == in_effect;
  return std::abs(asked.get<double>() - in_effect.get<double>()) <= 1e-3 * asked.get<double>();
}

// Says why a process has no row for a setting.
std::string WhyNotSeen(const std::string& setting, const HookReport& report) {
  if (!report.uses_framework()) return "no report";
  return report.uses_framework_of(setting) ? "it did not read the settings file: its environment was changed"
                                           : "the script does not use what the setting is for";
}

// Returns the reason why a process did not apply the setting, for the lowest such rank; empty if all applied
// it.
std::string WhyNotApplied(const std::string& setting, const Json& asked,
                          const std::vector<HookReport>& reports) {
  if (reports.empty())
    return "the hook saw no DDP, no FSDP2 and no DeepSpeed: the script uses none, Python ran with -S, -I or "
           "-E, or its PYTHONPATH was replaced";
  for (const HookReport& report : reports) {
    const std::string where = fmt::format("rank {}: ", report.rank);
    if (!report.error.empty()) return where + report.error;
    const auto row = report.settings.find(setting);
    if (row == report.settings.end()) return where + WhyNotSeen(setting, report);
    if (!row->second.reason.empty()) return where + row->second.reason;
    if (!SameValue(asked, row->second.in_effect))
      return fmt::format("{}the framework has {}", where, row->second.in_effect.dump());
  }
  return {};
}

Judgement Judge(const std::string& setting, const Json& asked, const std::vector<HookReport>& reports,
                const RecordedStep* step) {
  const std::string why_not = WhyNotApplied(setting, asked, reports);
  if (!why_not.empty()) return NotInEffect(why_not);
  if (step == nullptr) return NotProvable("the framework has it; no repeating calls were recorded");
  return JudgeByCalls(setting, asked, reports.front(), *step);
}

}  // namespace

const char* Name(SettingStanding standing) {
  switch (standing) {
    case SettingStanding::kInEffect:
      return "in effect";
    case SettingStanding::kNotInEffect:
      return "not in effect";
    case SettingStanding::kNotProvable:
      return "not provable";
  }
  return "";
}

size_t CountOf(const RecordedStep& step, Collective collective) {
  return static_cast<size_t>(std::ranges::count(step.operations, collective,
                                                [](const WireOperation& one) { return one.collective; }));
}

std::optional<bool> GathersAgain(const Fsdp2Report& report, const RecordedStep& step) {
  const size_t gathers = CountOf(step, Collective::kAllGather);
  const size_t scatters = CountOf(step, Collective::kReduceScatter);
  if (scatters == 0) return std::nullopt;
  if (report.passes == 1) return gathers > scatters;
  const size_t modules = GatheringModules(report, step);
  if (modules == 0) return std::nullopt;
  const auto passes = static_cast<size_t>(report.passes);
  if (gathers > passes * modules) return true;
  // The job may keep parameters between passes and still gather again in the backward pass. Then M modules
  // make M gathers in the first forward pass and M - 1 in each of the backward passes. If there are M passes,
  // this sum is M * M, which a job that gathers in each forward pass makes too.
  if (gathers != modules + passes * (modules - 1)) return false;
  return passes == modules ? std::nullopt : std::optional(true);
}

std::vector<SettingReceipt> ReceiptsOf(const FrameworkValues& asked, const std::vector<HookReport>& reports,
                                       const RecordedStep* step) {
  std::vector<SettingReceipt> receipts;
  for (const auto& [setting, value] : asked) {
    Judgement judgement = Judge(setting, value, reports, step);
    receipts.push_back({setting, value, judgement.standing, std::move(judgement.how)});
  }
  return receipts;
}

std::string Describe(const SettingReceipt& receipt) {
  return fmt::format("{} = {}: {}: {}", receipt.setting, receipt.asked.dump(), Name(receipt.standing),
                     receipt.how);
}

Json ToJson(const std::vector<SettingReceipt>& receipts) {
  Json rows = Json::array();
  for (const SettingReceipt& receipt : receipts)
    rows.push_back({{"setting", receipt.setting},
                    {"asked", receipt.asked},
                    {"standing", Name(receipt.standing)},
                    {"how", receipt.how}});
  return rows;
}

}  // namespace dynamiccl
