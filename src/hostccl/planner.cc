// SPDX-License-Identifier: Apache-2.0
#include "src/hostccl/planner.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "src/hostccl/debug_log.h"
#include "src/hostccl/hostccl_constants.h"
#include "src/hostccl/pinned_choice.h"
#include "src/hostccl/plugin_host/tuner_session.h"

namespace dynamiccl::hostccl {
namespace {

tl::unexpected<PlanError> Fail(ncclResult_t result, std::string message) {
  Warn("{}", message);
  return tl::unexpected<PlanError>(PlanError{result, std::move(message)});
}

class TunedPlanner final : public Planner {
 public:
  struct Parts {
    CommunicatorInfo info;
    CostModelInput model;
    PinnedNames pinned_names;
    PinnedMasks pinned;
    std::optional<TunerSession> tuner;
    int device = 0;
  };
  explicit TunedPlanner(Parts parts) : parts_(std::move(parts)) {}

  PlanResult<CollectiveConfig> Choose(const PlannedBatch& batch) override;
  void LogScheduled(Collective collective, uint64_t api_bytes, const CollectiveConfig& config) const override;
  int channels() const override { return parts_.model.fabric.max_channels; }
  void Finalize() override { parts_.tuner.reset(); }

 private:
  tl::unexpected<PlanError> NothingLeft(const PlannedBatch& batch) const;

  Parts parts_;
};

PlanResult<CollectiveConfig> TunedPlanner::Choose(const PlannedBatch& batch) {
  const auto index = static_cast<size_t>(batch.collective);
  if (index >= kTunableCollectives) return Fail(ncclInternalError, "planner asked for a point-to-point call");
  SetLogDevice(parts_.device);
  const ConfigMask allowed = SupportedConfigs(batch.collective) & parts_.pinned[index];
  CostTable table = EstimateCosts(parts_.model, batch.collective, batch.bytes, batch.n_pipe_ops, allowed);
  int wanted_channels = 0;
  if (parts_.tuner) {
    const TunerAnswer answer = parts_.tuner->Ask(batch.collective, batch.bytes, batch.n_pipe_ops, table);
    if (answer.result != ncclSuccess) {
      return Fail(answer.result, fmt::format("Tuner plugin failed getCollInfo for {} with result {}",
                                             Name(batch.collective), static_cast<int>(answer.result)));
    }
    table = answer.table;
    wanted_channels = answer.channels;
  }
  CollectiveConfig config = CheapestConfig(table);
  if (config.leaves_nccl_alone()) return NothingLeft(batch);
  // Up to 2.30 a plugin's number replaces NCCL's; NCCL does not check it, hostccl keeps it within what is set
  // up.
  const int chosen = wanted_channels != 0 ? wanted_channels
                                          : DefaultChannels(parts_.model, batch.collective, batch.bytes,
                                                            config.algorithm, config.protocol);
  config.channels = static_cast<uint8_t>(std::clamp(chosen, 1, channels()));
  return config;
}

tl::unexpected<PlanError> TunedPlanner::NothingLeft(const PlannedBatch& batch) const {
  const auto was_set = [](const char* name, const std::string& value) {
    return value.empty() ? std::string() : fmt::format(" {} was set to {}.", name, value);
  };
  const PinnedNames& names = parts_.pinned_names;
  return Fail(ncclInvalidUsage,
              fmt::format("Error : no algorithm/protocol available for function {} with datatype {}.{}{}",
                          Name(batch.collective), NcclName(batch.data_type),
                          was_set("NCCL_ALGO", names.algorithms), was_set("NCCL_PROTO", names.protocols)));
}

void TunedPlanner::LogScheduled(Collective collective, uint64_t api_bytes,
                                const CollectiveConfig& config) const {
  if (parts_.info.rank != 0) return;
  Info(NCCL_SUBSYS_TUNING, "{}: {} Bytes -> Algo {} proto {} channel{{Lo..Hi}}={{0..{}}}", Name(collective),
       api_bytes, LogName(config.algorithm), LogName(config.protocol), config.channels - 1);
}

// Channels of the communicator: what the fabric has, within the limits; at least one.
int ChannelsWithin(const Fabric& fabric, const PlannerOptions& options) {
  const auto given = [](int value) { return value == NCCL_CONFIG_UNDEF_INT ? 0 : value; };
  const ChannelLimits limits = LimitsFromEnvironment({given(options.min_ctas), given(options.max_ctas)});
  const int channels = limits.max == 0 ? fabric.max_channels : std::min(fabric.max_channels, limits.max);
  // As in NCCL a minimum only adds channels to the communicator, and hostccl has set up all it can already.
  return std::clamp(channels, 1, std::max(1, fabric.max_channels));
}

}  // namespace

PlanResult<std::unique_ptr<Planner>> Planner::Create(const CommunicatorInfo& info, const Fabric& fabric,
                                                     const PlannerOptions& options) {
  SetLogDevice(options.device);
  TunedPlanner::Parts parts{.info = info, .pinned_names = PinnedFromEnvironment(), .device = options.device};
  const auto pinned = MasksOf(parts.pinned_names);
  if (!pinned) return Fail(ncclInvalidUsage, pinned.error().message);
  parts.pinned = *pinned;
  Fabric limited = fabric;
  limited.max_channels = ChannelsWithin(fabric, options);
  parts.model = HostcclModel(limited);
  const ncclResult_t opened = TunerSession::Open(info, parts.model, parts.tuner);
  if (opened != ncclSuccess) {
    return Fail(opened, fmt::format("Tuner plugin failed init with result {}", static_cast<int>(opened)));
  }
  return std::make_unique<TunedPlanner>(std::move(parts));
}

}  // namespace dynamiccl::hostccl
