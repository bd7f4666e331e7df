// SPDX-License-Identifier: Apache-2.0
// Writes a policy that prefers one algorithm and protocol for every call:
//   write_sample_policy p.dcpolicy Ring LL
#include <cstdio>

#include "src/policy/policy_file.h"
#include "tests/support/sample_policy.h"

int main(int argc, char** argv) {
  if (argc != 4) return 2;
  const auto algorithm = dynamiccl::ParseAlgorithm(argv[2]);
  const auto protocol = dynamiccl::ParseProtocol(argv[3]);
  if (!algorithm || !protocol) return 2;
  const auto policy = dynamiccl::test::MakePolicyThatPrefers(*algorithm, *protocol);
  const auto written = dynamiccl::WritePolicyFile(argv[1], *policy);
  if (!written) std::fprintf(stderr, "%s\n", written.error().message.c_str());
  return written ? 0 : 1;
}
