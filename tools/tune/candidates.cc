// SPDX-License-Identifier: Apache-2.0
#include "tools/tune/candidates.h"

#include <fmt/format.h>

#include <sstream>

#include "src/collective/size_class.h"
#include "tools/ab/rule_settings.h"
#include "tools/tune/deepspeed_settings.h"
#include "tools/tune/setting_receipt.h"
#include "tools/tune/trainer_settings.h"

namespace dynamiccl {
namespace {

// Sizes of DDP's buckets to try, in MiB. 1 and 5 let more communication overlap with computing, 100 makes
// fewer calls, 1000 means one bucket for most models. PyTorch's default is 25 MiB after a first bucket of 1
// MiB.
constexpr int kBucketCaps[] = {1000, 1, 100, 5};
// Sizes of DDP's first bucket to try, in MiB. With a small one the first AllReduce begins earlier.
constexpr double kFirstBuckets[] = {0.25, 5};
// Numbers of modules to gather at once.
constexpr int kModulesPerUnit[] = {2, 4};
// Bytes of a rank's states for each byte of parameters: parameters, gradients and two moments of Adam.
constexpr uint64_t kStatesOfParameters = 4;
// Share of the free memory that the gathered parameters may take. With more, the activations may not fit
// beside them.
constexpr double kMemoryShare = 0.5;
// Largest difference of the bytes that a step sums, as a share of the unchanged job's. A setting may pad
// gradients or send scalars with them. Half or twice the bytes mean that what repeats is not one step.
constexpr double kMostOtherBytes = 0.3;

// One channel comes first because it wins on a slow rail, where NCCL's own choice loses most. A start with
// few steps tries only the first configs, so other numbers of channels and algorithms alternate.
constexpr const char* kAllReduceConfigs[] = {"ring/simple/1", "tree/simple/1", "ring/simple/4", "ring/simple",
                                             "ring/ll128",    "ring/simple/2", "tree/simple",   "ring/ll",
                                             "tree/ll128",    "ring/simple/8", "tree/ll"};
constexpr const char* kShardConfigs[] = {"ring/simple/1", "pat/simple/1", "ring/simple/4",
                                         "ring/simple",   "ring/ll128",   "ring/simple/2",
                                         "pat/simple",    "ring/ll",      "ring/simple/8"};

// The lower bound on the channels to try. A tuner can only lower NCCL's own number, which is 2 to 32 on most
// machines with NVLink. Only a communicator's minCTAs raises it.
constexpr const char* kMoreChannels = "min_ctas=32";

void AddBuckets(const DdpReport& report, CandidateList& list) {
  for (const int cap : kBucketCaps)
    if (cap != report.bucket_cap_mb) list.framework.push_back({.values = {{"ddp.bucket_cap_mb", cap}}});
}

// Adds the other arguments of DDP that change how gradients travel and not what they are.
void AddDdpArguments(const DdpReport& report, CandidateList& list) {
  for (const double first : kFirstBuckets)
    if (report.takes_first_bucket && first < report.bucket_cap_mb)
      list.framework.push_back({.values = {{"ddp.first_bucket_mb", first}}});
  if (report.gradient_as_bucket_view == false)
    list.framework.push_back({.values = {{"ddp.gradient_as_bucket_view", true}}});
  if (report.static_graph == false)
    list.framework.push_back(
        {.values = {{"ddp.static_graph", true}},
         .remark = "each step must use the same parameters; PyTorch ends the job if not"});
}

// True if `more` bytes leave enough of the free memory.
bool Fits(const Fsdp2Report& report, uint64_t more) {
  return report.free_bytes > 0 &&
         static_cast<double>(more) <= kMemoryShare * static_cast<double>(report.free_bytes);
}

// Adds a candidate that keeps FSDP2's parameters gathered from the forward to the backward pass, if the
// memory allows it. For a job that already keeps them, adds a candidate that does not.
void AddReshard(const Fsdp2Report& report, const RecordedStep& step, CandidateList& list) {
  // A job that does not tell is taken for one that gathers again, as FSDP2 does by itself.
  const bool reshards = GathersAgain(report, step).value_or(true);
  const std::string needs = fmt::format("holds {} of parameters on each rank from forward to backward",
                                        FormatBytes(report.parameter_bytes));
  if (!reshards) {
    list.framework.push_back(
        {.values = {{"fsdp2.reshard_after_forward", true}}, .remark = "needs less memory"});
  } else if (Fits(report, report.parameter_bytes)) {
    list.framework.push_back({.values = {{"fsdp2.reshard_after_forward", false}}, .remark = needs});
  } else {
    list.left_out.push_back(fmt::format("reshard_after_forward=false {}, and {} are free", needs,
                                        FormatBytes(report.free_bytes)));
  }
}

void AddPrefetch(const Fsdp2Report& report, CandidateList& list) {
  for (const int depth : {1, 2})
    if (depth != report.forward_prefetch)
      list.framework.push_back({.values = {{"fsdp2.forward_prefetch", depth}}});
  if (report.backward_prefetch != 2) list.framework.push_back({.values = {{"fsdp2.backward_prefetch", 2}}});
}

void AddUnits(const Fsdp2Report& report, CandidateList& list) {
  for (const int modules : kModulesPerUnit)
    if (report.takes_lists && report.largest_unit == 1 && 2 * modules <= report.longest_row)
      list.framework.push_back(
          {.values = {{"fsdp2.modules_per_unit", modules}},
           .remark = fmt::format("holds the parameters of {} modules at once instead of one", modules)});
}

// Adds hybrid sharding within a node, and within half of the ranks.
void AddHybrid(const Fsdp2Report& report, const RecordedStep& step, CandidateList& list) {
  const int half = step.ranks / 2;
  std::vector<int> groups = {step.ranks_per_node};
  if (half != step.ranks_per_node) groups.push_back(half);
  for (const int group : groups) {
    if (!report.one_mesh || group < 2 || group >= step.ranks || step.ranks % group != 0) continue;
    const uint64_t states = kStatesOfParameters * report.parameter_bytes;
    const uint64_t more = states / static_cast<uint64_t>(group) - states / static_cast<uint64_t>(step.ranks);
    const std::string needs = fmt::format("holds {} more of states on each rank", FormatBytes(more));
    if (Fits(report, more))
      list.framework.push_back({.values = {{"fsdp2.shard_ranks", group}}, .remark = needs});
    else
      list.left_out.push_back(
          fmt::format("shard_ranks={} {}, and {} are free", group, needs, FormatBytes(report.free_bytes)));
  }
}

uint64_t SummedBytes(const RecordedStep& step) {
  uint64_t bytes = 0;
  for (const WireOperation& one : step.operations)
    if (one.collective == Collective::kAllReduce || one.collective == Collective::kReduceScatter)
      bytes += one.Bytes();
  return bytes;
}

bool HasShards(const RecordedStep& step) {
  return CountOf(step, Collective::kAllGather) + CountOf(step, Collective::kReduceScatter) > 0;
}

void AddConfigs(const RecordedStep& step, CandidateList& list) {
  if (HasShards(step)) {
    for (const char* config : kShardConfigs) list.configs.push_back({.config = config});
  } else {
    for (const char* config : kAllReduceConfigs) list.configs.push_back({.config = config});
  }
}

}  // namespace

const char* Name(Framework framework) {
  switch (framework) {
    case Framework::kDdp:
      return "DDP";
    case Framework::kFsdp2:
      return "FSDP2";
    case Framework::kDeepSpeed:
      return "DeepSpeed";
    case Framework::kMegatron:
      return "Megatron-LM";
    case Framework::kTrainer:
      return "the ZeRO trainer";
    case Framework::kOther:
      return "no framework that can be set";
  }
  return "";
}

Framework FrameworkOf(const std::vector<HookReport>& reports) {
  for (const HookReport& report : reports) {
    if (report.ddp) return Framework::kDdp;
    if (report.fsdp2) return Framework::kFsdp2;
    if (report.deepspeed) return Framework::kDeepSpeed;
  }
  return Framework::kOther;
}

std::string Candidate::Name() const {
  if (config.empty()) return DescribeValues(values);
  return values.empty() ? config : DescribeValues(values) + ", " + config;
}

CandidateList CandidatesFor(const WatchedRun& base) {
  CandidateList list;
  if (base.trainer) list.framework = TrainerCandidates(*base.trainer);
  for (const HookReport& report : base.reports) {
    if (report.ddp) {
      AddBuckets(*report.ddp, list);
      AddDdpArguments(*report.ddp, list);
    }
    if (report.fsdp2 && !report.ddp) {
      AddReshard(*report.fsdp2, *base.step, list);
      AddPrefetch(*report.fsdp2, list);
      AddUnits(*report.fsdp2, list);
      AddHybrid(*report.fsdp2, *base.step, list);
    }
    if (report.deepspeed && !report.ddp && !report.fsdp2)
      list.framework = DeepSpeedCandidates(*report.deepspeed);
    if (!list.framework.empty()) break;
  }
  AddConfigs(*base.step, list);
  if (!base.on_host)
    list.framework.push_back(
        {.config = kMoreChannels,
         .remark = "its kernels take more of the GPU's processors from the computation"});
  return list;
}

std::string WhyNotComparable(const Candidate& candidate, const RecordedStep& step, const RecordedStep& base) {
  // Hybrid sharding sums between groups, too.
  if ((step.marked && base.marked) || candidate.values.contains("fsdp2.shard_ranks")) return {};
  const auto bytes = static_cast<double>(SummedBytes(step)), of_base = static_cast<double>(SummedBytes(base));
  if (bytes >= (1 - kMostOtherBytes) * of_base && bytes <= (1 + kMostOtherBytes) * of_base) return {};
  return fmt::format(
      "its step is not known: the calls that repeat sum {} of gradients, those of the unchanged job {}; let "
      "the "
      "program mark its steps (src/annotate), or step with an optimizer of torch",
      FormatBytes(SummedBytes(step)), FormatBytes(SummedBytes(base)));
}

void KeepLikeliest(size_t most, CandidateList& list) {
  while (list.framework.size() + list.configs.size() > most) {
    std::vector<Candidate>& longer =
        list.configs.size() >= list.framework.size() ? list.configs : list.framework;
    list.left_out.push_back(longer.back().Name() + " was not tried for lack of time");
    longer.pop_back();
  }
}

Result<Candidate> CandidateNamed(const std::string& text) {
  Candidate candidate;
  std::istringstream parts(text);
  for (std::string part; std::getline(parts, part, ',');) {
    if (part.find('=') != std::string::npos && !BoundsChannels(part))
      DYNAMICCL_CHECK_OK(AddValue(part, candidate.values));
    else
      candidate.config += (candidate.config.empty() ? "" : ",") + part;
  }
  if (!candidate.config.empty()) DYNAMICCL_CHECK_OK(RulesOfSetting(candidate.config));
  if (candidate.config.empty() && candidate.values.empty())
    return MakeError(ErrorKind::kInvalidArgument, "'{}' names nothing to try", text);
  return candidate;
}

Candidate Combined(const Candidate& framework, const Candidate& config) {
  const std::string bound = framework.config.empty() ? "" : "," + framework.config;
  return {.values = framework.values, .config = config.config + bound, .remark = framework.remark};
}

}  // namespace dynamiccl
