// SPDX-License-Identifier: Apache-2.0
// Calls of the tuner plugin, and the checks that keep a plugin from choosing an impossible pair.
#include "src/hostccl/plugin_host/tuner_session.h"

#include <algorithm>
#include <cstring>

#include "src/cost_model/tuner_constants.h"
#include "src/hostccl/debug_log.h"

namespace dynamiccl::hostccl {
namespace {

// NCCL continues after these two results. Any other result fails the user's collective, whatever NCCL's
// header says.
bool Accepted(ncclResult_t result) {
  return result == ncclSuccess || result == ncclInProgress;
}

}  // namespace

// Passes the model to the plugin as constants. They are read back only if the plugin changed them: Hopper's
// row, in the column of the number of nodes, like NCCL would use them.
ncclResult_t TunerSession::Open(const CommunicatorInfo& info, CostModelInput& model,
                                std::optional<TunerSession>& session) {
  auto tuner = AcquireTuner();
  if (tuner == nullptr) return ncclSuccess;
  const int ranks_a_node = info.n_ranks / std::max(1, info.n_nodes);
  ncclNvlDomainInfo_v5_t domains{info.n_nodes, ranks_a_node, ranks_a_node};
  const ncclTunerConstants_v5_t given = ToTunerConstants(model);
  ncclTunerConstants_v5_t constants = given;
  void* context = nullptr;
  const ncclResult_t result =
      tuner->functions.init(&context, info.id, static_cast<size_t>(info.n_ranks),
                            static_cast<size_t>(info.n_nodes), PluginLogger, &domains, &constants);
  if (!Accepted(result)) return result;
  if (std::memcmp(&given, &constants, sizeof(given)) != 0) {
    model.constants = CostConstantsOf(constants, kHopperRow, std::clamp(info.n_nodes, 1, 3) - 1);
  }
  session.emplace(std::move(tuner), context);
  return ncclSuccess;
}

TunerAnswer TunerSession::Ask(const TunerQuestion& question, const CostTable& table) {
  TunerAnswer answer{.table = table};
  // The interface declares float** but passes float[7][3].
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
      // If a plugin prices an impossible pair, NCCL up to 2.30 uses the pair and crashes. hostccl restores
      // the entry.
      if (table.microseconds[a][p] < 0) answer.table.microseconds[a][p] = -1;
    }
  }
  return answer;
}

ncclResult_t TunerSession::AskChunk(Collective collective, uint64_t bytes, const CollectiveConfig& config,
                                    size_t& chunk_bytes) {
  // NCCL asks for each part of a call with nChannels 1 (enqueue.cc, scheduleCollTasksToPlan).
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
