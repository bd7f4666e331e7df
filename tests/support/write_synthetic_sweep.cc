// SPDX-License-Identifier: Apache-2.0
// Writes a synthetic sweep, to train on:
//   write_synthetic_sweep s.measurements
#include <cstdio>

#include "tests/support/synthetic_sweep.h"
#include "traces/format/measurement_file.h"

int main(int argc, char** argv) {
  if (argc != 2) return 2;
  const auto written =
      dynamiccl::WriteMeasurementFile(argv[1], dynamiccl::test::MakeSweep({.topologies = 2}));
  if (!written) std::fprintf(stderr, "%s\n", written.error().message.c_str());
  return written ? 0 : 1;
}
