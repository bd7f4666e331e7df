// SPDX-License-Identifier: Apache-2.0
// A context and a row of a sweep as JSON, for the formats that hold them. Private to traces/format.
#pragma once

#include "traces/format/json_lines.h"
#include "traces/format/measurement.h"

namespace dynamiccl {

Json ContextToJson(const MeasurementContext& context);
Json RowToJson(const Measurement& row);
// Throw LineError or nlohmann's exceptions.
MeasurementContext ContextFromJson(const Json& json);
Measurement RowFromJson(const Json& json);

}  // namespace dynamiccl
