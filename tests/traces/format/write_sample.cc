// SPDX-License-Identifier: Apache-2.0
// Writes a small trace, and the same trace as JSON lines, for numpy_reader_test.py: write_sample FILE.ctrace
// FILE.jsonl
#include <fstream>

#include "tests/traces/any_trace.h"
#include "traces/format/trace_json.h"
#include "traces/format/trace_writer.h"

int main(int argc, char** argv) {
  if (argc != 3) return 2;
  dynamiccl::Trace trace = dynamiccl::AnyTrace(3);
  trace.sections.resize(1);
  std::ofstream(argv[2]) << dynamiccl::FormatTraceJson(trace).value();
  return dynamiccl::WriteTrace(argv[1], trace) ? 0 : 1;
}
