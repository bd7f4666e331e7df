// SPDX-License-Identifier: Apache-2.0
// A context, a row of a sweep and an effect on steps as JSON, for measurement files and sweep journals.
// Private to traces/format.
#pragma once

#include "traces/format/json_lines.h"
#include "traces/format/measurement.h"

namespace dynamiccl {

// Each returns the JSON object for one line of a file.
Json ContextToJson(const MeasurementContext& context);
Json RowToJson(const Measurement& row);
Json EffectToJson(const MeasuredEffect& effect);
// Each reads such an object back. All throw LineError or nlohmann's exceptions.
MeasurementContext ContextFromJson(const Json& json);
Measurement RowFromJson(const Json& json);
MeasuredEffect EffectFromJson(const Json& json);

}  // namespace dynamiccl
