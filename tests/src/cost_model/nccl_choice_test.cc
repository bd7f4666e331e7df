// SPDX-License-Identifier: Apache-2.0
// Compares the model with NVIDIA's own library: costs and choices of the committed data set
// (traces/nccl_choices), from the graphs that each release found.
#include "tests/src/cost_model/nccl_choice.h"

#include <gtest/gtest.h>

#include "tests/src/cost_model/nccl_agreement.h"
#include "tests/src/cost_model/nccl_facts.h"
#include "traces/format/nccl_choices_file.h"

namespace dynamiccl {
namespace {

const NcclChoices& Choices() {
  static const Result<NcclChoices> read = ReadNcclChoices(NCCL_CHOICES_FILE);
  if (!read) ADD_FAILURE() << read.error().message;
  return *read;
}

// Release 2.21 gives a tuner no table.
bool HasTable(const std::string& release) {
  return ReleaseNumber(release) >= 22200;
}

Agreement AgreementOf(const std::string& release) {
  Agreement agreement;
  for (const auto& [world, communicator] : Choices().releases.at(release).worlds) {
    const NcclCommunicatorFacts facts = FactsOf(Choices(), release, world);
    for (int c = 0; c < kTunableCollectives; ++c) {
      const auto collective = static_cast<Collective>(c);
      const NcclCalls& calls = communicator.collectives[static_cast<size_t>(c)];
      const std::string where = world.text() + " " + std::string(Name(collective));
      for (const NcclCall& call : calls.calls)
        CompareCall(facts, collective, calls, call, HasTable(release), where, &agreement);
    }
  }
  Print("NCCL " + release, agreement);
  return agreement;
}

struct Bound {
  const char* release;
  double costs;    // In percent of the cells.
  double choices;  // In percent of the calls.
  double widths;   // Channels and threads, in percent of the calls with a right choice.
};

class NcclOwnChoice : public testing::TestWithParam<Bound> {};

TEST_P(NcclOwnChoice, IsThatOfTheLibrary) {
  const Bound bound = GetParam();
  ASSERT_TRUE(Choices().releases.contains(bound.release));
  const Agreement agreement = AgreementOf(bound.release);
  EXPECT_GT(agreement.choices.all, 1000);
  EXPECT_GE(agreement.costs.percent(), bound.costs);
  EXPECT_GE(agreement.choices.percent(), bound.choices);
  EXPECT_GE(agreement.channels.percent(), bound.widths);
  EXPECT_GE(agreement.threads.percent(), bound.widths);
}

INSTANTIATE_TEST_SUITE_P(Releases, NcclOwnChoice,
                         testing::Values(Bound{"2.28.9", 100, 100, 100}, Bound{"2.30.7", 100, 100, 100},
                                         Bound{"2.32.3", 100, 100, 100}),
                         [](const auto& test) {
                           std::string name = test.param.release;
                           std::replace(name.begin(), name.end(), '.', '_');
                           return name;
                         });

}  // namespace
}  // namespace dynamiccl
