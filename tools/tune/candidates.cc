// SPDX-License-Identifier: Apache-2.0
#include "tools/tune/candidates.h"

#include <fmt/format.h>

#include <sstream>

#include "src/collective/size_class.h"
#include "tools/ab/rule_settings.h"
#include "tools/tune/setting_receipt.h"
#include "tools/tune/trainer_settings.h"

namespace dynamiccl {
namespace {

// Sizes of DDP's buckets to try, in MiB. 1 and 5 let more communication overlap with computing, 100 makes
// fewer calls, 1000 means one bucket for most models. PyTorch's default is 25 MiB after a first bucket of 1
// MiB.
constexpr int kBucketCaps[] = {1000, 1, 100, 5};
// Share of the free memory that the gathered parameters may take. With more, the activations may not fit
// beside them.
constexpr double kMemoryShare = 0.5;

// One channel comes first because it wins on a slow rail, where NCCL's own choice loses most.
constexpr const char* kAllReduceConfigs[] = {"ring/simple/1", "tree/simple/1", "ring/simple", "ring/ll128",
                                             "tree/simple",   "ring/ll",       "tree/ll128",  "tree/ll"};
constexpr const char* kShardConfigs[] = {"ring/simple/1", "pat/simple/1", "ring/simple",
                                         "ring/ll128",    "pat/simple",   "ring/ll"};

void AddBuckets(const DdpReport& report, CandidateList& list) {
  for (const int cap : kBucketCaps)
    if (cap != report.bucket_cap_mb) list.framework.push_back({.values = {{"ddp.bucket_cap_mb", cap}}});
}

// Adds a candidate that keeps FSDP2's parameters gathered from the forward to the backward pass, if the
// memory allows it. For a job that already keeps them, adds a candidate that does not.
void AddReshard(const Fsdp2Report& report, const RecordedStep& step, CandidateList& list) {
  const bool reshards = CountOf(step, Collective::kAllGather) > CountOf(step, Collective::kReduceScatter);
  const std::string needs = fmt::format("holds {} of parameters on each rank from forward to backward",
                                        FormatBytes(report.parameter_bytes));
  const bool fits = report.free_bytes > 0 && static_cast<double>(report.parameter_bytes) <=
                                                 kMemoryShare * static_cast<double>(report.free_bytes);
  if (!reshards) {
    list.framework.push_back(
        {.values = {{"fsdp2.reshard_after_forward", true}}, .remark = "needs less memory"});
  } else if (fits) {
    list.framework.push_back({.values = {{"fsdp2.reshard_after_forward", false}}, .remark = needs});
  } else {
    list.left_out.push_back(fmt::format("reshard_after_forward=false {}, and {} are free", needs,
                                        FormatBytes(report.free_bytes)));
  }
}

void AddPrefetch(CandidateList& list) {
  for (const int depth : {1, 2}) list.framework.push_back({.values = {{"fsdp2.forward_prefetch", depth}}});
  list.framework.push_back({.values = {{"fsdp2.backward_prefetch", 2}}});
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
    if (report.ddp) AddBuckets(*report.ddp, list);
    if (report.fsdp2 && !report.ddp) {
      AddReshard(*report.fsdp2, *base.step, list);
      AddPrefetch(list);
    }
    if (!list.framework.empty()) break;
  }
  AddConfigs(*base.step, list);
  return list;
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
    if (part.find('=') != std::string::npos) {
      DYNAMICCL_CHECK_OK(AddValue(part, candidate.values));
      continue;
    }
    if (!candidate.config.empty())
      return MakeError(ErrorKind::kInvalidArgument, "'{}' names two configs", text);
    DYNAMICCL_CHECK_OK(RulesOfSetting(part));
    candidate.config = part;
  }
  if (candidate.config.empty() && candidate.values.empty())
    return MakeError(ErrorKind::kInvalidArgument, "'{}' names nothing to try", text);
  return candidate;
}

Candidate Combined(const Candidate& framework, const Candidate& config) {
  return {.values = framework.values, .config = config.config, .remark = framework.remark};
}

}  // namespace dynamiccl
