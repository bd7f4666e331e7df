// SPDX-License-Identifier: Apache-2.0
// Calls the tuner plugin, with the checks that keep a plugin from choosing an impossible pair of algorithm
// and protocol.
#include "src/hostccl/plugin_host/tuner_session.h"

#include <algorithm>
#include <cstring>

#include "src/cost_model/tuner_constants.h"
#include "src/hostccl/debug_log.h"
#include "src/nccl_plugin/tuner_constants_rows.h"

namespace dynamiccl::hostccl {
namespace {

// Returns true for the two results after which NCCL continues. After any other result NCCL makes the user's
// collective fail, although NCCL's header says otherwise.
bool Accepted(ncclResult_t result) {
  return result == ncclSuccess || result == ncclInProgress;
}

}  // namespace

// Passes the cost model to the plugin as NCCL's table of constants. If the plugin changed the table, the
// model is read back from the entries that NCCL would use: the row of Hopper, in the column for the number of
// nodes.
ncclResult_t TunerSession::Open(const CommunicatorInfo& info, int newest, CostModelInput& model,
                                std::optional<TunerSession>& session) {
  auto tuner = AcquireTuner(newest);
  if (tuner == nullptr) return ncclSuccess;
  const int ranks_a_node = info.n_ranks / std::max(1, info.n_nodes);
  ncclNvlDomainInfo_v5_t domains{info.n_nodes, ranks_a_node, ranks_a_node};
  const ncclTunerConstants_v5_t given = ToTunerConstants(model);
  ncclTunerConstants_v7_t all = WithRubinRow(given);
  void* context = nullptr;
  const ncclResult_t result =
      tuner->functions.init(&context, info.id, static_cast<size_t>(info.n_ranks),
                            static_cast<size_t>(info.n_nodes), PluginLogger, &domains, &all);
  if (!Accepted(result)) return result;
  const ncclTunerConstants_v5_t constants = WithoutRubinRow(all);
  if (std::memcmp(&given, &constants, sizeof(given)) != 0) {
    model.constants = CostConstantsOf(constants, kHopperRow, std::clamp(info.n_nodes, 1, 3) - 1);
  }
  session.emplace(std::move(tuner), context);
  return ncclSuccess;
}

TunerAnswer TunerSession::Ask(const TunerQuestion& question, const CostTable& table) {
  TunerAnswer answer{.table = table};
  if (tuner_ == nullptr) return answer;
  // NCCL's interface declares float** but passes float[7][3].
  auto* cells = reinterpret_cast<float**>(answer.table.microseconds.data());
  const ncclResult_t result = tuner_->functions.getCollInfo(
      context_, static_cast<ncclFunc_t>(question.collective), static_cast<size_t>(question.bytes),
      question.n_pipe_ops, cells, kAlgorithms, kProtocols, question.registered ? 1 : 0, &answer.channels);
  if (!Accepted(result)) {
    answer.result = result;
    return answer;
  }
  for (size_t a = 0; a < table.microseconds.size(); ++a) {
    for (size_t p = 0; p < table.microseconds[a].size(); ++p) {
      // If a plugin gives a cost to an impossible pair of algorithm and protocol, NCCL up to 2.30 uses the
      // pair and crashes. hostccl marks the pair as impossible again.
      if (table.microseconds[a][p] < 0) answer.table.microseconds[a][p] = -1;
    }
  }
  return answer;
}

ncclResult_t TunerSession::AskChunk(Collective collective, uint64_t bytes, const CollectiveConfig& config,
                                    size_t& chunk_bytes) {
  // NCCL passes nChannels 1, because it asks for the part of the call that one channel carries (enqueue.cc,
  // scheduleCollTasksToPlan).
  const ncclResult_t result = tuner_->functions.getChunkSize(
      context_, static_cast<ncclFunc_t>(collective), static_cast<size_t>(bytes),
      static_cast<int>(config.algorithm), static_cast<int>(config.protocol), /*nChannels=*/1, &chunk_bytes);
  return Accepted(result) ? ncclSuccess : result;
}

void TunerSession::Finalize() {
  if (tuner_ == nullptr) return;
  if (tuner_->functions.finalize != nullptr) tuner_->functions.finalize(context_);
  tuner_.reset();
}

}  // namespace dynamiccl::hostccl
