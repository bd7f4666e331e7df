// SPDX-License-Identifier: Apache-2.0
// The map of the best choice over a sweep, and of two defaults to compare it with: the library's own and the
// calibrated one. The best is picked on even repeats and timed on odd ones
// (tools/report/choice_comparison.h).
#pragma once

#include <string>
#include <vector>

#include "studies/calibration/fitted_model.h"
#include "tools/report/choice_comparison.h"
#include "tools/report/json_output.h"

namespace dynamiccl {

// One cell of the sweep.
struct MapRow {
  std::string topology;
  Collective collective = Collective::kAllReduce;
  uint64_t bytes = 0;
  TimedConfig best;
  // The library's default.
  TimedConfig usual;
  // The fitted model's choice.
  TimedConfig calibrated;
};

// All cells, and how often each default is clearly not the best.
struct ChoiceMap {
  std::vector<MapRow> rows;  // cells that have a default and the calibrated default's config
  // Number of different (algorithm, protocol, channels) that are best somewhere.
  int winners = 0;
  // Shares of the cells in which a default costs at least 1.1 or 1.3 times the best.
  double usual_share_11 = 0;
  double usual_share_13 = 0;
  double calibrated_share_11 = 0;
  double calibrated_share_13 = 0;
};

// Maps the cells of topologies for which there is a model.
ChoiceMap MapChoices(const MeasurementFile& file, const std::vector<FittedModel>& models);

// A Markdown table and a summary line, as in docs/results.
std::string Markdown(const ChoiceMap& map);
Json ToJson(const ChoiceMap& map);

}  // namespace dynamiccl
