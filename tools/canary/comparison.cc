// SPDX-License-Identifier: Apache-2.0
// The times that two releases expect are not compared with each other, because NCCL recalibrates its cost
// model now and then, which changes no real time. Where the choices differ, each release's own table prices
// both choices.
#include "tools/canary/comparison.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <iterator>

#include "src/collective/size_class.h"

namespace dynamiccl {
namespace {

// Two choices differ if one takes 1.15 times as long or more. The times come from NCCL's own cost model,
// which is off by as much, so smaller differences mean nothing.
constexpr double kNoticedLoss = 1.15;
constexpr const char* kGaveUp = "falling back to simple order";

// Collects the differences between the runs (cells) of two releases.
class CellComparison {
 public:
  CellComparison(const Cell& before, const Cell& after, const Traffic* traffic)
      : before_(before), after_(after), traffic_(traffic) {}

  std::vector<Difference> Compare() {
    if (before_.end == CellEnd::kNotRun || after_.end == CellEnd::kNotRun) return {};
    CompareEnds();
    if (!before_.passed()) return found_;
    CompareSearches();
    if (after_.passed()) {
      CompareRanks();
      if (traffic_ != nullptr) effect_ = EffectOn(*traffic_, before_, after_);
      CompareTraffic();
      CompareAdapters();
      CompareTransports();
      CompareBandwidths();
      CompareChannels();
      CompareMemory();
      CompareCpus();
      CompareChoices();
    }
    std::stable_sort(found_.begin(), found_.end(),
                     [](const Difference& a, const Difference& b) { return a.gravity > b.gravity; });
    return found_;
  }

 private:
  void Add(DifferenceKind kind, Gravity gravity, std::string before, std::string after,
           std::string note = "") {
    found_.push_back({.kind = kind,
                      .gravity = gravity,
                      .before = std::move(before),
                      .after = std::move(after),
                      .note = std::move(note),
                      .where = "",
                      .collectives = "",
                      .warnings = {}});
  }

  static std::string StackNote(const Cell& cell) {
    std::vector<std::string> lines;
    for (const auto& [stack, threads] : cell.stacks) lines.push_back(fmt::format("{} in {}", threads, stack));
    return fmt::format("{}", fmt::join(lines, "; "));
  }

  void CompareEnds() {
    if (before_.passed() && after_.passed()) return;
    const bool neither_runs = !before_.passed() && !after_.passed();
    Add(DifferenceKind::kEnd, before_.passed() ? Gravity::kGrave : Gravity::kNotice, EndText(before_),
        EndText(after_), neither_runs ? "neither runs, so nothing else can be compared" : StackNote(after_));
    std::ranges::copy_if(after_.warnings, std::back_inserter(found_.back().warnings),
                         [&](const std::string& one) {
                           return std::ranges::find(before_.warnings, one) == before_.warnings.end();
                         });
  }

  static bool GaveUp(const Cell& cell) {
    return std::any_of(cell.warnings.begin(), cell.warnings.end(),
                       [](const std::string& one) { return one.find(kGaveUp) != std::string::npos; });
  }

  void CompareFusedAdapters() {
    if (before_.counts_adapters_twice == after_.counts_adapters_twice) return;
    const auto text = [](const Cell& cell) {
      return std::string(cell.counts_adapters_twice ? "fused adapters beside their parts"
                                                    : "each adapter once");
    };
    Add(DifferenceKind::kSearch, Gravity::kNotice, text(before_), text(after_));
  }

  void CompareSearches() {
    CompareFusedAdapters();
    const bool before = GaveUp(before_), after = GaveUp(after_);
    if (before == after) return;
    const auto text = [](bool gave_up) {
      return std::string(gave_up ? "gave up, simple order" : "found paths");
    };
    Add(DifferenceKind::kSearch, after ? Gravity::kGrave : Gravity::kNotice, text(before), text(after));
  }

  void CompareRanks() {
    if (before_.ranks_launch_alike == after_.ranks_launch_alike) return;
    const std::string alike = "all launch the same kernels", unlike = "launch unlike kernels";
    if (after_.ranks_launch_alike)
      Add(DifferenceKind::kRanks, Gravity::kNotice, unlike, alike);
    else
      Add(DifferenceKind::kRanks, Gravity::kGrave, alike, unlike,
          "on GPUs such a call hangs, or its result is wrong");
  }

  // Adds a difference if the job's calls take clearly longer in total.
  void CompareTraffic() {
    if (!effect_ || !IsGraveFor(*effect_)) return;
    const ModelEffect& model = *effect_->model;
    Add(DifferenceKind::kTraffic, Gravity::kGrave, fmt::format("{:.3g} ms", model.us_before / 1000),
        fmt::format("{:.3g} ms", model.us_after / 1000),
        fmt::format("your calls by the model of NCCL {}: {:+.0f} %", kModelRelease,
                    100 * (model.ratio() - 1)));
  }

  static std::string AdapterText(const Cell& cell) {
    const bool unlike = !cell.adapters.empty() && cell.adapters.begin()->first.find('/') != std::string::npos;
    return fmt::format("{} of {} used", cell.adapters.size(), unlike ? "all nodes" : "a node");
  }

  void CompareAdapters() {
    if (before_.adapters.size() == after_.adapters.size()) return;
    const bool fewer = after_.adapters.size() < before_.adapters.size();
    const bool missed = fewer && !(effect_ && CostsNothing(*effect_));
    Add(DifferenceKind::kAdapters, missed ? Gravity::kGrave : Gravity::kNotice, AdapterText(before_),
        AdapterText(after_), fewer ? LostAdaptersNote(missed) : "");
  }

  // Says which traffic the lost adapters matter to. Their number alone does not show what a job loses.
  std::string LostAdaptersNote(bool missed) const {
    if (!missed) return fmt::format("your calls take as long by the model of NCCL {}", kModelRelease);
    if (effect_) return "";
    return "a communicator across nodes loses bandwidth by it, in calls large enough to be bound by it; "
           "--trace judges those of your job";
  }

  static std::string TransportText(const Cell& cell) {
    std::vector<std::string> names;
    for (const auto& [name, count] : cell.transports) names.push_back(name);
    return fmt::format("{}", fmt::join(names, " "));
  }

  // Compares only the names of the transports. The number of connections follows from the channels, which are
  // compared separately.
  void CompareTransports() {
    const std::string before = TransportText(before_), after = TransportText(after_);
    if (before == after) return;
    const bool slower = after_.transports.contains("SHM") && !before_.transports.contains("SHM");
    const bool lost = before_.transports.contains("P2P") && !after_.transports.contains("P2P");
    Add(DifferenceKind::kTransports, slower || lost ? Gravity::kGrave : Gravity::kNotice, before, after);
  }

  static double BandwidthOf(const Cell& cell, const std::string& graph) {
    const CellGraph& found = cell.graphs.at(graph);
    const bool across = !found.adapters.empty();
    return found.channels * (across ? found.inter_gbps : found.intra_gbps);
  }

  static std::string GraphText(const Cell& cell, const std::string& graph) {
    const CellGraph& found = cell.graphs.at(graph);
    return fmt::format("{} {} x {:g} GB/s", graph, found.channels,
                       found.adapters.empty() ? found.intra_gbps : found.inter_gbps);
  }

  void CompareBandwidths() {
    for (const auto& [graph, found] : before_.graphs) {
      if (!after_.graphs.contains(graph)) continue;
      const double before = BandwidthOf(before_, graph), after = BandwidthOf(after_, graph);
      if (after * kNoticedLoss >= before && before * kNoticedLoss >= after) continue;
      Add(DifferenceKind::kBandwidth, Gravity::kNotice, GraphText(before_, graph), GraphText(after_, graph),
          fmt::format("{:g} GB/s -> {:g} GB/s in all, by the graph search", before, after));
    }
  }

  static std::string ChannelText(const Cell& cell) {
    return fmt::format("{} collective, {} NVLS, {} point-to-point, {} per peer", cell.channels,
                       cell.nvls_channels, cell.p2p_channels, cell.p2p_channels_per_peer);
  }

  void CompareChannels() {
    const std::string before = ChannelText(before_), after = ChannelText(after_);
    if (before != after) Add(DifferenceKind::kChannels, Gravity::kNotice, before, after);
  }

  // Adds a difference if NCCL takes clearly more or less memory of a GPU. The change must exceed both a share
  // of the earlier amount and the size of a channel's buffers.
  void CompareMemory() {
    constexpr double kMiB = 1 << 20, kLeastMiB = 32, kLeastShare = 1.15;
    const double before = static_cast<double>(before_.device_memory_bytes) / kMiB;
    const double after = static_cast<double>(after_.device_memory_bytes) / kMiB;
    if (before == 0 || after == 0 || std::abs(after - before) < kLeastMiB) return;
    if (after < before * kLeastShare && before < after * kLeastShare) return;
    Add(DifferenceKind::kMemory, Gravity::kNotice, fmt::format("{:.0f} MiB of a GPU", before),
        fmt::format("{:.0f} MiB of a GPU", after));
  }

  void CompareCpus() {
    if (before_.restores_cpus == after_.restores_cpus) return;
    const auto text = [](const Cell& cell) {
      return std::string(cell.restores_cpus ? "threads get their CPUs back after init"
                                            : "threads stay on the CPUs of their GPU after init");
    };
    Add(DifferenceKind::kCpus, Gravity::kNotice, text(before_), text(after_));
  }

  // Returns the cost of `config` in a release's table; NaN if the table does not have it.
  static double CostOf(const CellChoice& table, const CollectiveConfig& config) {
    const auto row = table.costs.find({config.algorithm, config.protocol});
    return row == table.costs.end() ? std::nan("") : row->second;
  }

  static std::string ConfigText(const CellChoice& choice) {
    return fmt::format("{}/{}/{}", Name(choice.config.algorithm), Name(choice.config.protocol),
                       choice.config.channels);
  }

  // Adds a choice that differs. Collectives with the same change at the same size share one difference.
  void AddChoice(const CellChoice& before, const CellChoice& after, std::string note) {
    const std::string size = FormatBytes(before.bytes);
    Difference one{.kind = DifferenceKind::kChoice,
                   .gravity = Gravity::kNotice,
                   .before = ConfigText(before),
                   .after = ConfigText(after),
                   .note = std::move(note),
                   .where = size,
                   .collectives = std::string(Name(before.collective)),
                   .warnings = {}};
    for (Difference& known : found_) {
      if (effect_) break;  // each kind of call has its own part of the job's time
      if (known.kind != one.kind || known.before != one.before || known.after != one.after ||
          known.where != size || known.note != one.note)
        continue;
      known.collectives += fmt::format(", {}", Name(before.collective));
      return;
    }
    found_.push_back(std::move(one));
  }

  // Says how much slower the later choice is than the earlier one, as each release's cost model prices both.
  static std::string PriceNote(const CellChoice& before, const CellChoice& after) {
    const double by_before = CostOf(before, after.config) / CostOf(before, before.config);
    const double by_after = CostOf(after, after.config) / CostOf(after, before.config);
    if (std::isnan(by_before) || std::isnan(by_after)) return "";
    if (by_before > kNoticedLoss && by_after > kNoticedLoss) return "slower by the model of both releases";
    if (by_before > kNoticedLoss)
      return fmt::format("{:.2f} of the time by the older release's model, {:.2f} by the newer's", by_before,
                         by_after);
    return "";
  }

  // Says how many of the job's calls get this choice, and how the cost model expects their time to change.
  std::string ShareNote(const ClassEffect& one) const {
    std::string note = fmt::format("{} of {} calls", one.calls.calls, traffic_->calls);
    if (!one.us_before || !one.us_after) return note + ", without a price by one model";
    if (*one.us_before == *one.us_after)
      return note + ", as long by one model, which prices no channel counts";
    return note + fmt::format(", {:.3g} -> {:.3g} us each by one model", *one.us_before, *one.us_after);
  }

  void CompareTrafficChoices() {
    for (const ClassEffect& one : effect_->classes) {
      if (!one.changes()) continue;
      const auto choice = [&](const CollectiveConfig& config) {
        return CellChoice{one.calls.collective, one.calls.bytes, config, {}};
      };
      AddChoice(choice(one.before), choice(one.after), ShareNote(one));
    }
  }

  void CompareChoices() {
    if (effect_) return CompareTrafficChoices();
    for (const CellChoice& before : before_.choices) {
      const auto after =
          std::find_if(after_.choices.begin(), after_.choices.end(), [&](const CellChoice& one) {
            return one.collective == before.collective && one.bytes == before.bytes;
          });
      if (after == after_.choices.end() || SameAsFarAsKnown(before.config, after->config)) continue;
      AddChoice(before, *after, PriceNote(before, *after));
    }
  }

  const Cell& before_;
  const Cell& after_;
  const Traffic* traffic_;
  std::optional<TrafficEffect> effect_;
  std::vector<Difference> found_;
};

// Returns the last warning. Warnings of ranks that lost another rank are consequences, so they count only
// where nothing else was warned about.
std::string LastCause(const std::vector<std::string>& warnings) {
  const auto found = std::find_if(warnings.rbegin(), warnings.rend(), [](const std::string& one) {
    return one.find("Connection closed by remote peer") == std::string::npos;
  });
  if (found != warnings.rend()) return *found;
  return warnings.empty() ? "" : warnings.back();
}

}  // namespace

const char* Name(DifferenceKind kind) {
  constexpr const char* kNames[] = {"end",      "search", "ranks",   "adapters", "transports", "bandwidth",
                                    "channels", "choice", "traffic", "memory",   "cpus"};
  return kNames[static_cast<size_t>(kind)];
}

const char* Name(CanaryVerdict verdict) {
  constexpr const char* kNames[] = {"same", "changed", "worse", "fails"};
  return kNames[static_cast<size_t>(verdict)];
}

std::string EndText(const Cell& cell) {
  const std::string joined = fmt::format("{} of {} ranks joined", cell.ranks_joined, cell.ranks);
  const std::string cause = LastCause(cell.warnings);
  const std::string warning = cause.empty() ? "" : ": " + cause;
  switch (cell.end) {
    case CellEnd::kPassed:
      return "runs";
    case CellEnd::kHung:
      return fmt::format("hangs, {} after {:.0f} s", joined, cell.seconds);
    case CellEnd::kCrashed:
      return fmt::format("crashes ({}), {}{}", cell.problem, joined, warning);
    case CellEnd::kInitFailed:
      return fmt::format("init fails, {}{}", joined, warning);
    case CellEnd::kCallFailed:
      return fmt::format("a collective fails{}", warning);
    case CellEnd::kNotRun:
      break;
  }
  return cell.problem;
}

std::vector<Difference> CompareCells(const Cell& before, const Cell& after, const Traffic* traffic) {
  return CellComparison(before, after, traffic).Compare();
}

CanaryVerdict VerdictOf(const std::vector<Difference>& differences) {
  CanaryVerdict verdict = CanaryVerdict::kSame;
  for (const Difference& one : differences) {
    const bool stops = one.kind == DifferenceKind::kEnd || one.kind == DifferenceKind::kRanks;
    const CanaryVerdict its = one.gravity == Gravity::kNotice ? CanaryVerdict::kChanged
                              : stops                         ? CanaryVerdict::kFails
                                                              : CanaryVerdict::kWorse;
    verdict = std::max(verdict, its);
  }
  return verdict;
}

}  // namespace dynamiccl
