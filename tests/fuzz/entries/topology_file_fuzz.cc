// SPDX-License-Identifier: Apache-2.0
// Parses topology files. Input: the text.
#include "src/transport/topology.h"
#include "tests/fuzz/fuzz_input.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace dynamiccl;
  const auto topology = ParseTopology(fuzz::TextOf(fuzz::BytesOf(data, size)), "fuzz");
  if (!topology) return 0;
  const auto again = ParseTopology(FormatTopology(*topology), "again");
  fuzz::Require(again && *again == *topology, "a topology that is written is read the same");
  for (const int ranks : {1, 7, 64}) (void)topology->NodesOfRanks(ranks);
  for (int to = 0; to < topology->nodes; ++to) (void)topology->EventsOf(0, to, 0);
  return 0;
}
