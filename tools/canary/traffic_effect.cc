// SPDX-License-Identifier: Apache-2.0
#include "tools/canary/traffic_effect.h"

#include <algorithm>

namespace dynamiccl {
namespace {

// The job's communication must take at least this many times as long before the change counts as grave. A
// smaller factor is within the error of NCCL's cost model.
constexpr double kGraveLoss = 1.15;
constexpr double kNoLoss = 1.01;

const CellChoice* ChoiceOf(const Cell& cell, const TrafficClass& one) {
  const auto found = std::find_if(cell.choices.begin(), cell.choices.end(), [&](const CellChoice& choice) {
    return choice.collective == one.collective && choice.bytes == one.bytes;
  });
  return found == cell.choices.end() ? nullptr : &*found;
}

// Returns the microseconds of `config` in the cost table of `priced`. Negative: the table has no price for
// this algorithm and protocol.
double CostOf(const CellChoice& priced, const CollectiveConfig& config) {
  const auto cost = priced.costs.find({config.algorithm, config.protocol});
  return cost == priced.costs.end() ? -1 : cost->second;
}

// The time of the job's calls that one release's cost table predicts: once with the choices of the earlier
// release, and once with those of the later release.
struct Expected {
  double with_before = 0;
  double with_after = 0;
  double ratio() const { return with_before > 0 ? with_after / with_before : 1; }
};

bool CanPrice(const CellChoice& table, const CellChoice& before, const CellChoice& after) {
  return CostOf(table, before.config) >= 0 && CostOf(table, after.config) >= 0;
}

void Add(const CellChoice& table, const CellChoice& before, const CellChoice& after, uint64_t calls,
         Expected& sum) {
  sum.with_before += static_cast<double>(calls) * CostOf(table, before.config);
  sum.with_after += static_cast<double>(calls) * CostOf(table, after.config);
}

// Adds up how much longer or shorter the job's calls take, one size class after the other.
class EffectSum {
 public:
  EffectSum(const Traffic& traffic, const Cell& before, const Cell& after)
      : traffic_(traffic), before_(before), after_(after) {
    if (traffic.model) effect_.model = ModelEffect{.knows_waits = true};
  }

  void Add(const TrafficClass& one) {
    const CellChoice* const old = ChoiceOf(before_, one);
    const CellChoice* const now = ChoiceOf(after_, one);
    if (old == nullptr || now == nullptr) {
      effect_.calls_unknown += one.calls;
      return;
    }
    effect_.calls += one.calls;
    AddTables(one, *old, *now);
    ClassEffect found{.calls = one, .before = old->config, .after = now->config};
    AddModel(&found);
    AddShares(found);
    effect_.classes.push_back(std::move(found));
  }

  TrafficEffect Finish() {
    effect_.by_before = by_before_.ratio();
    effect_.by_after = by_after_.ratio();
    effect_.own_us_before = by_before_.with_before;
    effect_.own_us_after = by_after_.with_after;
    if (bytes_ > 0) effect_.changed_bytes = changed_bytes_ / bytes_;
    effect_.times_are_waits = all_waits_;
    const Times& times = all_waits_ ? waits_ : recorded_;
    if (all_times_ && times.all > 0) effect_.changed_time = times.changed / times.all;
    std::ranges::stable_sort(effect_.classes, [](const ClassEffect& a, const ClassEffect& b) {
      return a.added_us() > b.added_us();
    });
    if (effect_.model && effect_.model->us_before > 0 && traffic_.step_ns > 0)
      effect_.model->step_ns_after = traffic_.step_ns + added_ns_ / static_cast<double>(traffic_.steps);
    return std::move(effect_);
  }

 private:
  struct Times {
    double all = 0, changed = 0;
  };

  void AddTables(const TrafficClass& one, const CellChoice& old, const CellChoice& now) {
    if (!CanPrice(old, old, now) || !CanPrice(now, old, now)) {
      effect_.calls_unpriced += one.calls;
      return;
    }
    dynamiccl::Add(old, old, now, one.calls, by_before_);
    dynamiccl::Add(now, old, now, one.calls, by_after_);
  }

  void AddModel(ClassEffect* found) {
    if (!traffic_.model) return;
    const OneModel& model = *traffic_.model;
    const TrafficClass& one = found->calls;
    found->us_before = ModelPrice(model, before_, one.collective, one.bytes, found->before);
    found->us_after = ModelPrice(model, after_, one.collective, one.bytes, found->after);
    const auto best_before = BestModelPrice(model, before_, one.collective, one.bytes);
    const auto best_after = BestModelPrice(model, after_, one.collective, one.bytes);
    ModelEffect& sum = *effect_.model;
    if (!found->us_before || !found->us_after || !best_before || !best_after) {
      sum.calls_unpriced += one.calls;
      return;
    }
    const auto calls = static_cast<double>(one.calls);
    sum.us_before += calls * *found->us_before;
    sum.us_after += calls * *found->us_after;
    sum.best_us_before += calls * *best_before;
    sum.best_us_after += calls * *best_after;
    sum.knows_waits = sum.knows_waits && one.knows_waits;
    // The recorded times of the job are more accurate than the model's. The model only gives the factor by
    // which they change.
    const double base_ns = one.knows_waits       ? one.waited_ns
                           : one.recorded_ns > 0 ? one.recorded_ns
                                                 : 1000 * calls * *found->us_before;
    added_ns_ += base_ns * (*found->us_after / *found->us_before - 1);
  }

  void AddShares(const ClassEffect& found) {
    const TrafficClass& one = found.calls;
    CollectiveConfig as_wide = found.after;
    as_wide.channels = found.before.channels;
    const bool same_pair = SameAsFarAsKnown(found.before, as_wide);
    effect_.calls_with_other_pair += same_pair ? 0 : one.calls;
    effect_.calls_with_other_channels += same_pair && found.changes() ? one.calls : 0;
    all_times_ = all_times_ && one.recorded_ns > 0;
    all_waits_ = all_waits_ && one.knows_waits;
    bytes_ += static_cast<double>(one.all_bytes);
    recorded_.all += one.recorded_ns;
    waits_.all += one.waited_ns;
    if (!found.changes()) return;
    changed_bytes_ += static_cast<double>(one.all_bytes);
    recorded_.changed += one.recorded_ns;
    waits_.changed += one.waited_ns;
  }

  const Traffic& traffic_;
  const Cell& before_;
  const Cell& after_;
  TrafficEffect effect_;
  Expected by_before_, by_after_;
  double bytes_ = 0, changed_bytes_ = 0;
  Times recorded_, waits_;
  bool all_times_ = true, all_waits_ = true;
  double added_ns_ = 0;
};

}  // namespace

bool SameAsFarAsKnown(const CollectiveConfig& one, const CollectiveConfig& other) {
  const bool hidden = one.protocol == Protocol::kUndefined || other.protocol == Protocol::kUndefined;
  return one.algorithm == other.algorithm && one.channels == other.channels &&
         (hidden || one.protocol == other.protocol);
}

TrafficEffect EffectOn(const Traffic& traffic, const Cell& before, const Cell& after) {
  EffectSum sum(traffic, before, after);
  for (const TrafficClass& one : traffic.classes) sum.Add(one);
  return sum.Finish();
}

bool IsGraveFor(const TrafficEffect& effect) {
  return effect.model && effect.model->ratio() >= kGraveLoss && effect.model->best_ratio() >= kGraveLoss;
}

bool CostsNothing(const TrafficEffect& effect) {
  return effect.model && effect.calls > 0 && effect.calls_unknown + effect.model->calls_unpriced == 0 &&
         effect.model->ratio() <= kNoLoss && effect.model->best_ratio() <= kNoLoss;
}

}  // namespace dynamiccl
