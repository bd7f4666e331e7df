// SPDX-License-Identifier: Apache-2.0
// How often trials are made. The pace follows from what trials may cost, what they may win and what there is
// to pay for them: a key's part of the budget is proportional to what trials may win there. So a search that
// shows no gain goes slowly, and one whose trials cost nothing goes at once. Pure functions; all times are in
// nanoseconds.
#pragma once

#include <cstdint>
#include <vector>

namespace dynamiccl {

// Share of the communication time that trials and timing may cost: the 1 % that docs/guard.md promises.
inline constexpr double kProbingBudget = 0.01;
// The share in the first calls of each key: half, because the choices that the job began with have not paid
// for anything yet (docs/guard.md).
inline constexpr double kFirstProbingBudget = 0.005;
// Calls of each key with the smaller share.
inline constexpr double kFirstProbingCalls = 1000;

// A key with trials, as the pace needs it.
struct TriedKey {
  uint32_t trials = 0;  // number of candidates in use
  double trial_ns = 0;  // what one trial may cost more than a call of the key's choice
  double worth_ns = 0;  // what the trials might have won in all of the key's calls so far
  uint32_t calls = 0;   // calls of the key so far
};

// Returns what trials and timing may cost after `total_ns` of communication, without credits.
// `call_of_each_key_ns`: the time of one call of each key.
double ProbingBudgetNs(double total_ns, double call_of_each_key_ns);

// What there is to pay for trials.
struct TrialFunds {
  // What may still be spent; below 0: too much was spent.
  double credit_ns = 0;
  double call_of_each_key_ns = 0;  // time of one call of each key of the communicator
  double total_ns = 0;             // time of the communicator's calls so far
  bool after_change = false;       // the fabric was seen to change in this job
  uint32_t group = 3;              // TablePlan::trials_a_choice
};

// Returns KeyPlan::rest for each of `keys`, in their order: the calls of the choice after each group of
// trials.
std::vector<uint16_t> RestsBetweenTrials(const std::vector<TriedKey>& keys, const TrialFunds& funds);

}  // namespace dynamiccl
