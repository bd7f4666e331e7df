// SPDX-License-Identifier: Apache-2.0
// The planner of hostccl. For each batch it computes the costs of the pairs of algorithm and protocol that
// hostccl has and the user allows. It lets the tuner plugin change these costs, and takes the cheapest pair
// by the rule of the emulated NCCL release. The number of channels follows from the size of the batch and the
// limits.
#include "src/hostccl/planner.h"

#include <algorithm>
#include <array>
#include <limits>
#include <mutex>
#include <optional>
#include <utility>

#include "src/hostccl/debug_log.h"
#include "src/hostccl/hostccl_constants.h"
#include "src/hostccl/pinned_choice.h"
#include "src/hostccl/plugin_host/tuner_session.h"

namespace dynamiccl::hostccl {
namespace {

// Logs the message as NCCL WARN and returns it as an error.
tl::unexpected<PlanError> Fail(ncclResult_t result, std::string message) {
  Warn("{}", message);
  return tl::unexpected<PlanError>(PlanError{result, std::move(message)});
}

// In microseconds (FLT_MAX / 2): the cost that NCCL 2.31 and later give to a pair of algorithm and protocol
// that only a tuner may choose.
constexpr float kOptInMicroseconds = std::numeric_limits<float>::max() / 2;
// In bytes. NCCL 2.31 and later ask the tuner first about symmetric kernels. That question has the bytes of
// one rank's share, but at least this many (seen with 2.32.3).
constexpr uint64_t kLeastFirstBytes = 1024;

// Returns true if NCCL has symmetric kernels for the collective. NCCL 2.31 and later ask the tuner about them
// first.
bool HasSymmetricKernels(Collective collective) {
  return collective == Collective::kAllReduce || collective == Collective::kAllGather ||
         collective == Collective::kReduceScatter;
}

// Returns the cheapest pair of algorithm and protocol by the rule of NCCL 2.31 and later. Only pairs that
// were possible before the tuner was asked count. A negative cost is not excluded. Among equal costs the pair
// with the highest numbers wins.
CollectiveConfig LatestCheapestConfig(const CostTable& possible, const CostTable& priced) {
  CollectiveConfig best = kLeaveNcclAlone;
  float best_time = std::numeric_limits<float>::infinity();
  for (int a = kAlgorithms - 1; a >= 0; --a) {
    for (int p = kProtocols - 1; p >= 0; --p) {
      const CollectiveConfig config{static_cast<Algorithm>(a), static_cast<Protocol>(p), 0};
      if (possible.at(config.algorithm, config.protocol) < 0) continue;
      const float time = priced.at(config.algorithm, config.protocol);
      if (!(time < best_time)) continue;
      best = config;
      best_time = time;
    }
  }
  return best;
}

// In bytes. A channel of AllReduce waits for its peer in each round, so from this size on several channels
// take less time.
constexpr uint64_t kManyChannelsFrom = 4 << 20;

// Returns true if one channel is enough for a batch where no link is emulated. The channels are lanes of one
// thread, and each has slots of its own. More channels copy no faster, and their slots no longer fit into the
// second-level cache (docs/results/speed.md).
bool FewChannels(const PlannedBatch& batch) {
  switch (batch.collective) {
    case Collective::kAllGather:
    case Collective::kReduceScatter:
      return true;
    case Collective::kAllReduce:
      return batch.bytes < kManyChannelsFrom;
    default:
      return false;
  }
}

// Remembers the model's latest choices, because programs repeat their calls and computing a choice takes
// longer than finding it here. It holds only batches whose choice depends on nothing but the members compared
// in Find. It is a direct-mapped cache: a new entry replaces the one that was in its place.
class ChoiceMemory {
 public:
  const CollectiveConfig* Find(const PlannedBatch& batch) const {
    const Entry& entry = entries_[Place(batch)];
    return entry.bytes == batch.bytes && entry.collective == batch.collective && entry.op == batch.op &&
                   entry.n_pipe_ops == batch.n_pipe_ops
               ? &entry.config
               : nullptr;
  }
  void Keep(const PlannedBatch& batch, const CollectiveConfig& config) {
    entries_[Place(batch)] = {batch.bytes, batch.collective, batch.op, batch.n_pipe_ops, config};
  }
  // Returns true if the choice for this batch may be remembered: the call's own configuration selects no
  // algorithm and sets no limits on channels.
  static bool Holds(const PlannedBatch& batch) {
    const CallChoice& choice = batch.choice;
    return choice.selection.none() && choice.min_channels == 0 && choice.max_channels == 0;
  }

 private:
  static constexpr size_t kEntries = 64;
  struct Entry {
    uint64_t bytes = 0;  // 0 for an empty entry: no batch has 0 bytes
    Collective collective = Collective::kAllReduce;
    ReduceOp op = ReduceOp::kSum;
    int n_pipe_ops = 0;
    CollectiveConfig config;
  };

  // Returns the place of a batch's entry. The multiplicative hash (Knuth, TAOCP volume 3, 6.4) suits sizes,
  // which are mostly powers of two.
  static size_t Place(const PlannedBatch& batch) {
    constexpr uint64_t kGolden = 0x9E3779B97F4A7C15;
    return ((batch.bytes ^ static_cast<uint64_t>(batch.collective)) * kGolden) >> 58;
  }

  std::array<Entry, kEntries> entries_;
};

// The planner of hostccl; tests use others. It owns the session of the tuner plugin.
class TunedPlanner final : public Planner {
 public:
  struct Parts {
    CommunicatorInfo info;
    CostModelInput model;
    PinnedNames pinned_names;
    PinnedMasks pinned;
    std::optional<TunerSession> tuner;
    int device = 0;
    EmulatedRelease emulated = EmulatedRelease::k230;
    ChannelLimits limits;
    bool links = true;
  };
  explicit TunedPlanner(Parts parts) : parts_(std::move(parts)) {}

  PlanResult<CollectiveConfig> Choose(const PlannedBatch& batch) override {
    const bool holds = !parts_.tuner && ChoiceMemory::Holds(batch);
    const CollectiveConfig* const known = holds ? memory_.Find(batch) : nullptr;
    if (known != nullptr) return *known;
    auto config = WorkOut(batch);
    if (holds && config) memory_.Keep(batch, *config);
    return config;
  }
  PlanResult<size_t> ChunkBytes(const ChunkQuestion& question) override;
  float Microseconds(const PlannedBatch& batch, const CollectiveConfig& config) const override;
  int UsualChannels(const PlannedBatch& batch, const CollectiveConfig& config) const override;
  void LogScheduled(Collective collective, uint64_t api_bytes, const CollectiveConfig& config) const override;
  bool answers_last() const override { return !parts_.tuner; }
  int channels() const override { return parts_.model.fabric.max_channels; }
  void Finalize() override {
    const std::lock_guard lock(tuner_mutex_);
    if (parts_.tuner) parts_.tuner->Finalize();
  }

 private:
  bool newest() const { return parts_.emulated == EmulatedRelease::k232; }
  PlanResult<CollectiveConfig> WorkOut(const PlannedBatch& batch);
  CostTable TableFor(const PlannedBatch& batch) const;
  PlanResult<TunerAnswer> Ask(const PlannedBatch& batch, const CostTable& table);
  PlanResult<TunerAnswer> AskTuner(const TunerQuestion& question, const CostTable& table);
  int Channels(const PlannedBatch& batch, const CollectiveConfig& config, int wanted) const;
  tl::unexpected<PlanError> NothingLeft(const PlannedBatch& batch) const;
  PlanResult<CollectiveConfig> WithoutSelection(const PlannedBatch& batch);
  // Returns true if NCCL_ALGO or NCCL_PROTO limits this collective.
  bool Pinned(size_t collective) const { return !parts_.pinned[collective].all(); }

  Parts parts_;
  ChoiceMemory memory_;
  // An abort may end the session while another thread's call asks the plugin.
  std::mutex tuner_mutex_;
};

// Computes the configuration of a batch from the cost table, which the tuner may change. If no algorithm and
// protocol are possible, the error message names the variables that the user set.
PlanResult<CollectiveConfig> TunedPlanner::WorkOut(const PlannedBatch& batch) {
  const auto index = static_cast<size_t>(batch.collective);
  if (index >= kTunableCollectives) return Fail(ncclInternalError, "planner asked for a point-to-point call");
  SetLogDevice(parts_.device);
  const CostTable table = TableFor(batch);
  TunerAnswer answer{.table = table};
  if (parts_.tuner) {
    auto asked = Ask(batch, table);
    if (!asked) return tl::unexpected(asked.error());
    answer = *asked;
  }
  CollectiveConfig config =
      newest() ? LatestCheapestConfig(table, answer.table) : CheapestConfig(answer.table);
  if (config.leaves_nccl_alone() && batch.choice.selection.any() && !Pinned(index)) {
    return WithoutSelection(batch);
  }
  if (config.leaves_nccl_alone()) return NothingLeft(batch);
  const int wanted = Channels(batch, config, answer.channels);
  config.channels = static_cast<uint8_t>(ChannelsWithin(batch.choice, wanted, channels()));
  return config;
}

// Returns the costs of the pairs of algorithm and protocol that are possible for the batch, before the tuner
// changes them.
CostTable TunedPlanner::TableFor(const PlannedBatch& batch) const {
  const auto index = static_cast<size_t>(batch.collective);
  ConfigMask allowed =
      Selected(batch.choice, SupportedConfigs(batch.collective) & parts_.pinned[index], Pinned(index));
  const bool averages = batch.collective == Collective::kReduceScatter && batch.op == ReduceOp::kAvg;
  if (averages && !newest()) allowed.reset(ConfigIndex(Algorithm::kPat, Protocol::kSimple));
  CostTable table = EstimateCosts(parts_.model, batch.collective, batch.bytes, batch.n_pipe_ops, allowed);
  const CommunicatorInfo& info = parts_.info;
  const bool pat_opt_in = newest() && info.n_nodes > 1 && info.n_ranks > info.n_nodes;
  if (pat_opt_in && allowed.test(ConfigIndex(Algorithm::kPat, Protocol::kSimple))) {
    table.microseconds[static_cast<size_t>(Algorithm::kPat)][static_cast<size_t>(Protocol::kSimple)] =
        kOptInMicroseconds;
  }
  return table;
}

// Asks the tuner one question. As in NCCL, an error of the plugin makes the user's call fail.
PlanResult<TunerAnswer> TunedPlanner::AskTuner(const TunerQuestion& question, const CostTable& table) {
  const std::lock_guard lock(tuner_mutex_);
  TunerAnswer answer = parts_.tuner->Ask(question, table);
  if (answer.result == ncclSuccess) return answer;
  return Fail(answer.result, fmt::format("Tuner plugin failed getCollInfo for {} with result {}",
                                         Name(question.collective), static_cast<int>(answer.result)));
}

// Asks the tuner as the emulated release does: 2.31 and later ask about symmetric kernels first.
PlanResult<TunerAnswer> TunedPlanner::Ask(const PlannedBatch& batch, const CostTable& table) {
  const TunerQuestion question{batch.collective, batch.bytes, batch.n_pipe_ops, batch.registered};
  if (newest() && HasSymmetricKernels(batch.collective)) {
    TunerQuestion first = question;
    first.n_pipe_ops = 0;
    if (batch.collective != Collective::kAllReduce) {
      first.bytes =
          std::max<uint64_t>(kLeastFirstBytes, batch.bytes / static_cast<uint64_t>(parts_.info.n_ranks));
    }
    CostTable nothing;
    for (auto& row : nothing.microseconds) row.fill(NCCL_ALGO_PROTO_IGNORE);
    const auto ignored = AskTuner(first, nothing);
    if (!ignored) return ignored;
  }
  return AskTuner(question, table);
}

// Returns the number of channels without a tuner: NCCL's number for the size, or fewer where no link is
// emulated.
int TunedPlanner::UsualChannels(const PlannedBatch& batch, const CollectiveConfig& config) const {
  const int by_size =
      DefaultChannels(parts_.model, batch.collective, batch.bytes, config.algorithm, config.protocol);
  const int usual = parts_.links || !FewChannels(batch) ? by_size : std::clamp(parts_.limits.min, 1, by_size);
  return std::clamp(usual, 1, channels());
}

// Returns the number of channels. `wanted` is the tuner's number, 0 if it gave none.
int TunedPlanner::Channels(const PlannedBatch& batch, const CollectiveConfig& config, int wanted) const {
  const int usual = UsualChannels(batch, config);
  // NCCL up to 2.30 does not check a plugin's number. hostccl limits it to the number of channels that are
  // set up.
  if (!newest()) return std::clamp(wanted != 0 ? wanted : usual, 1, channels());
  const int capped = wanted > 0 ? std::min(wanted, usual) : usual;
  return std::clamp(std::max(capped, parts_.limits.min), 1, channels());
}

PlanResult<size_t> TunedPlanner::ChunkBytes(const ChunkQuestion& question) {
  size_t bytes = question.default_bytes;
  const std::lock_guard lock(tuner_mutex_);
  if (!parts_.tuner || !parts_.tuner->sets_chunks()) return bytes;
  const uint64_t share = question.bytes / std::max<uint64_t>(1, question.config.channels);
  const ncclResult_t result = parts_.tuner->AskChunk(question.collective, share, question.config, bytes);
  if (result == ncclSuccess) return bytes;
  return Fail(result, fmt::format("Tuner plugin failed getChunkSize for {} with result {}",
                                  Name(question.collective), static_cast<int>(result)));
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

// Called if none of the algorithms and protocols in the call's algSelection is possible on this communicator.
// A forced selection is an error; otherwise the selection is ignored.
PlanResult<CollectiveConfig> TunedPlanner::WithoutSelection(const PlannedBatch& batch) {
  if (batch.choice.forced) {
    return Fail(ncclInvalidArgument,
                fmt::format("algSelection: no algorithm in the selected set is available for {}",
                            Name(batch.collective)));
  }
  PlannedBatch any = batch;
  any.choice.selection.reset();
  return WorkOut(any);
}

float TunedPlanner::Microseconds(const PlannedBatch& batch, const CollectiveConfig& config) const {
  ConfigMask only;
  only.set(ConfigIndex(config.algorithm, config.protocol));
  const CostTable table = EstimateCosts(parts_.model, batch.collective, batch.bytes, batch.n_pipe_ops, only);
  return table.at(config.algorithm, config.protocol);
}

void TunedPlanner::LogScheduled(Collective collective, uint64_t api_bytes,
                                const CollectiveConfig& config) const {
  if (parts_.info.rank != 0) return;
  Info(NCCL_SUBSYS_TUNING, "{}: {} Bytes -> Algo {} proto {} channel{{Lo..Hi}}={{0..{}}}", Name(collective),
       api_bytes, LogName(config.algorithm), LogName(config.protocol), config.channels - 1);
}

ChannelLimits LimitsOf(const PlannerOptions& options) {
  const auto given = [](int value) { return value == NCCL_CONFIG_UNDEF_INT ? 0 : value; };
  return LimitsFromEnvironment({given(options.min_ctas), given(options.max_ctas)});
}

// Returns the number of channels of a communicator: that of the fabric, within the limits, and at least one.
int ChannelsWithin(const Fabric& fabric, const ChannelLimits& limits) {
  const int channels = limits.max == 0 ? fabric.max_channels : std::min(fabric.max_channels, limits.max);
  // In NCCL a minimum only adds channels to the communicator. hostccl has already set up all of them.
  return std::clamp(channels, 1, std::max(1, fabric.max_channels));
}

}  // namespace

PlanResult<std::unique_ptr<Planner>> Planner::Create(const CommunicatorInfo& info, const Fabric& fabric,
                                                     const PlannerOptions& options) {
  SetLogDevice(options.device);
  TunedPlanner::Parts parts{.info = info, .pinned_names = PinnedFromEnvironment(), .device = options.device};
  parts.emulated = options.emulated;
  parts.limits = LimitsOf(options);
  parts.links = options.links;
  const auto pinned = MasksOf(parts.pinned_names);
  if (!pinned) return Fail(ncclInvalidUsage, pinned.error().message);
  parts.pinned = *pinned;
  Fabric limited = fabric;
  limited.max_channels = ChannelsWithin(fabric, parts.limits);
  parts.model = HostcclModel(limited);
  const ncclResult_t opened =
      TunerSession::Open(info, NewestTuner(options.emulated), parts.model, parts.tuner);
  if (opened != ncclSuccess) {
    return Fail(opened, fmt::format("Tuner plugin failed init with result {}", static_cast<int>(opened)));
  }
  return std::make_unique<TunedPlanner>(std::move(parts));
}

}  // namespace dynamiccl::hostccl
