// SPDX-License-Identifier: Apache-2.0
#include "plugin/chain/chained_tuner.h"

#include <dlfcn.h>

#include <cstring>

namespace dynamiccl {
namespace {

// NCCL's order: the name as it is, then the suffix of a file name.
Result<DynamicLibrary> OpenPlugin(const std::string& plugin) {
  auto library = DynamicLibrary::Open(plugin, RTLD_NOW | RTLD_LOCAL);
  if (library || plugin.find('/') != std::string::npos) return library;
  auto by_suffix = DynamicLibrary::Open("libnccl-tuner-" + plugin + ".so", RTLD_NOW | RTLD_LOCAL);
  return by_suffix ? std::move(by_suffix) : std::move(library);
}

}  // namespace

Result<std::unique_ptr<ChainedTuner>> ChainedTuner::Load(const std::string& plugin) {
  auto chained = std::make_unique<ChainedTuner>();
  DYNAMICCL_TRY(chained->library_, OpenPlugin(plugin));
  if (const void* v6 = chained->library_.Symbol("ncclTunerPlugin_v6")) {
    chained->tuner_ = *static_cast<const ncclTuner_v6_t*>(v6);
    return chained;
  }
  const void* v5 = chained->library_.Symbol("ncclTunerPlugin_v5");
  if (v5 == nullptr) {
    return MakeError(ErrorKind::kUnsupported, "{} has neither ncclTunerPlugin_v5 nor ncclTunerPlugin_v6",
                     plugin);
  }
  // Version 6 begins with the members of version 5.
  std::memcpy(&chained->tuner_, v5, sizeof(ncclTuner_v5_t));
  return chained;
}

ncclResult_t ChainedTuner::Init(const TunerInit& init, void** context) const {
  return tuner_.init(context, init.communicator, init.n_ranks, init.n_nodes, init.logger, init.nvl_domains,
                     init.constants);
}

ncclResult_t ChainedTuner::Ask(void* context, const TunerRequest& request) const {
  return tuner_.getCollInfo(context, request.function, request.bytes, request.n_pipe_ops,
                            reinterpret_cast<float**>(request.table), request.n_algorithms,
                            request.n_protocols, request.registered, request.channels);
}

ncclResult_t ChainedTuner::Finalize(void* context) const {
  return tuner_.finalize == nullptr ? ncclSuccess : tuner_.finalize(context);
}

}  // namespace dynamiccl
