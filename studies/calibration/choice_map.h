// SPDX-License-Identifier: Apache-2.0
// The map of the best choice over a sweep, with two defaults beside it: the library's own and the calibrated
// one. Picked on even repeats, timed on odd ones (tools/report/choice_comparison.h).
#pragma once

#include <string>
#include <vector>

#include "studies/calibration/fitted_model.h"
#include "tools/report/choice_comparison.h"
#include "tools/report/json_output.h"

namespace dynamiccl {

struct MapRow {
  std::string topology;
  Collective collective = Collective::kAllReduce;
  uint64_t bytes = 0;
  TimedConfig best;
  TimedConfig usual;       // the library's default
  TimedConfig calibrated;  // the fitted model's choice
};

struct ChoiceMap {
  std::vector<MapRow> rows;  // cells that have a default and the calibrated default's config
  int winners = 0;           // different (algorithm, protocol, channels) that are best somewhere
  // Cells where the default costs at least 1.1 and 1.3 times the best, of all.
  double usual_share_11 = 0;
  double usual_share_13 = 0;
  double calibrated_share_11 = 0;
  double calibrated_share_13 = 0;
};

ChoiceMap MapChoices(const MeasurementFile& file, const std::vector<FittedModel>& models);

// A Markdown table and a summary line, as docs/results has them.
std::string Markdown(const ChoiceMap& map);
Json ToJson(const ChoiceMap& map);

}  // namespace dynamiccl
