// SPDX-License-Identifier: Apache-2.0
#include "src/hostccl/planner.h"

#include <algorithm>

#include "src/hostccl/debug_log.h"

namespace dynamiccl::hostccl {
namespace {

// Below this the handshake of Simple costs more than the flags that LL sends with the data.
constexpr uint64_t kLLBytes = 64 << 10;

class DefaultPlanner final : public Planner {
 public:
  DefaultPlanner(const CommunicatorInfo& info, const Fabric& fabric, int channels)
      : info_(info), fabric_(fabric), channels_(channels) {}

  PlanResult<CollectiveConfig> Choose(const PlannedBatch& batch) override {
    const bool tree =
        batch.collective == Collective::kAllReduce && fabric_.n_nodes > 1 && batch.bytes <= kLLBytes;
    const uint64_t wanted = std::clamp<uint64_t>(batch.bytes / kLLBytes, 1, static_cast<uint64_t>(channels_));
    return CollectiveConfig{tree ? Algorithm::kTree : Algorithm::kRing,
                            batch.bytes <= kLLBytes ? Protocol::kLL : Protocol::kSimple,
                            static_cast<uint8_t>(wanted)};
  }

  void LogScheduled(Collective collective, uint64_t api_bytes,
                    const CollectiveConfig& config) const override {
    if (info_.rank != 0) return;
    Info(NCCL_SUBSYS_TUNING, "{}: {} Bytes -> Algo {} proto {} channel{{Lo..Hi}}={{0..{}}}", Name(collective),
         api_bytes, LogName(config.algorithm), LogName(config.protocol), config.channels - 1);
  }

  int channels() const override { return channels_; }
  void Finalize() override {}

 private:
  CommunicatorInfo info_;
  Fabric fabric_;
  int channels_;
};

}  // namespace

PlanResult<std::unique_ptr<Planner>> Planner::Create(const CommunicatorInfo& info, const Fabric& fabric,
                                                     const PlannerOptions& options) {
  const int limit = options.max_ctas == NCCL_CONFIG_UNDEF_INT ? fabric.max_channels : options.max_ctas;
  return std::make_unique<DefaultPlanner>(info, fabric, std::clamp(limit, 1, fabric.max_channels));
}

}  // namespace dynamiccl::hostccl
