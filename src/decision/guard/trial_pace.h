// SPDX-License-Identifier: Apache-2.0
// How often trials are made, from what they may cost, what they may win and what there is to pay for them: a
// key's part of what trials may cost follows from what they may win there. So a search that shows no gain
// goes slowly, and one whose trials cost nothing goes at once.
#pragma once

#include <cstdint>
#include <vector>

namespace dynamiccl {

// Share of communication time that trials and timing may cost; and in so many first calls of each key, where
// the choices that the job began with have not paid for anything yet.
inline constexpr double kProbingBudget = 0.01;
inline constexpr double kFirstProbingBudget = 0.005;
inline constexpr double kFirstProbingCalls = 1000;

// A key with trials.
struct TriedKey {
  uint32_t trials = 0;
  double trial_ns = 0;  // what one may cost more than the key's choice
  double worth_ns = 0;  // what its trials may win, of its calls so far
  uint32_t calls = 0;   // so far
};

// What trials and timing may cost after `total_ns` of communication, beside credits.
double ProbingBudgetNs(double total_ns, double call_of_each_key_ns);

struct TrialFunds {
  double credit_ns = 0;            // left to pay for trials; below 0: none
  double call_of_each_key_ns = 0;  // one call of each key of the communicator
  double total_ns = 0;             // of the communicator's calls so far
  bool after_change = false;       // the fabric was seen to change
  uint32_t group = 3;              // TablePlan::trials_a_choice
};

// KeyPlan::rest of each.
std::vector<uint16_t> RestsBetweenTrials(const std::vector<TriedKey>& keys, const TrialFunds& funds);

}  // namespace dynamiccl
