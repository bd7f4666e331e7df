// SPDX-License-Identifier: Apache-2.0
// Runs the trace importer that FUZZED_IMPORTER names. Input: the file, plain or gzipped.
#include "tests/fuzz/fuzz_input.h"
#include "traces/format/trace_calls.h"
#include "traces/import/trace_importer.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace dynamiccl;
  const auto bytes = fuzz::BytesOf(data, size);
  (void)FUZZED_IMPORTER().Recognises(fuzz::TextOf(bytes));
  const fuzz::InputFile file(bytes);
  const auto imported = FUZZED_IMPORTER().Import(fuzz::InputFile::path(), {});
  if (!imported) {
    fuzz::Require(!imported.error().message.empty(), "an error says what is wrong");
    return 0;
  }
  fuzz::Require(imported->trace.has_value() != imported->measurements.has_value(), "one of both is given");
  if (!imported->trace) return 0;
  for (const TraceSection& section : imported->trace->sections) (void)CallsOf(section);
  return 0;
}
