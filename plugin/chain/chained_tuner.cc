// SPDX-License-Identifier: Apache-2.0
#include "plugin/chain/chained_tuner.h"

#include "plugin/chain/plugin_search.h"
#include "src/nccl_plugin/tuner_constants_rows.h"

namespace dynamiccl {

Result<std::unique_ptr<ChainedTuner>> ChainedTuner::Find(const std::string& named) {
  auto chained = std::make_unique<ChainedTuner>();
  auto library = OpenPluginAsNccl(kTunerPlugin, named, "ncclTunerPlugin_v7");
  if (!library) return tl::unexpected(library.error());
  chained->library_ = std::move(*library);
  if (!FindTuner(chained->library_, chained->tuner_)) {
    return MakeError(ErrorKind::kUnsupported, "{} has none of ncclTunerPlugin_v2 to _v7",
                     named.empty() ? "the plugin that NCCL would load" : named);
  }
  return chained;
}

ncclResult_t ChainedTuner::Init(const TunerInit& init, void** context) const {
  const auto call = [&](ncclTunerConstants_v7_t* constants) {
    return tuner_.functions.init(context, init.communicator, init.n_ranks, init.n_nodes, init.logger,
                                 init.nvl_domains, constants);
  };
  if (init.constants == nullptr) return call(init.all_constants);
  // NCCL before 2.32.6 has no row of Rubin.
  ncclTunerConstants_v7_t with_rubin = WithRubinRow(*init.constants);
  ncclTunerConstants_v7_t& all = init.all_constants != nullptr ? *init.all_constants : with_rubin;
  const ncclResult_t result = call(&all);
  *init.constants = WithoutRubinRow(all);
  return result;
}

ncclResult_t ChainedTuner::Ask(void* context, const TunerRequest& request) const {
  return tuner_.functions.getCollInfo(context, request.function, request.bytes, request.n_pipe_ops,
                                      reinterpret_cast<float**>(request.table), request.n_algorithms,
                                      request.n_protocols, request.registered, request.channels);
}

ncclResult_t ChainedTuner::Finalize(void* context) const {
  return tuner_.functions.finalize == nullptr ? ncclSuccess : tuner_.functions.finalize(context);
}

}  // namespace dynamiccl
