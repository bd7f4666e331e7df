// SPDX-License-Identifier: Apache-2.0
#include "plugin/chain/chained_tuner.h"

#include <dlfcn.h>

#include "plugin/runtime/nccl_variable.h"

namespace dynamiccl {
namespace {

// The first that opens, as NCCL takes it.
Result<DynamicLibrary> OpenFirst(const std::vector<std::string>& candidates) {
  Error last{ErrorKind::kNotFound, "no name to look for", {}};
  for (const std::string& name : candidates) {
    auto library =
        name.empty() ? DynamicLibrary::Global() : DynamicLibrary::Open(name, RTLD_NOW | RTLD_LOCAL);
    if (library) return library;
    last = library.error();
  }
  return tl::unexpected(last);
}

const void* ObjectOf(const void* address) {
  Dl_info info{};
  return ::dladdr(address, &info) == 0 ? nullptr : info.dli_fbase;
}

// Under another name, or by the default one: chaining to it would never end.
bool IsThisObject(const DynamicLibrary& library) {
  const void* const tuner = library.Symbol("ncclTunerPlugin_v6");
  return tuner != nullptr && ObjectOf(tuner) == ObjectOf(reinterpret_cast<const void*>(&IsThisObject));
}

}  // namespace

Result<std::unique_ptr<ChainedTuner>> ChainedTuner::Find(const std::string& named) {
  auto chained = std::make_unique<ChainedTuner>();
  const char* name = named.empty() ? nullptr : named.c_str();
  auto library = OpenFirst(PluginCandidates(kTunerPlugin, name));
  if (!library) {
    const auto net = NcclVariable(kNetPlugin.variable);
    auto inside_net = OpenFirst(NetPluginCandidates(net ? net->c_str() : nullptr));
    if (!inside_net) return tl::unexpected(library.error());
    library = std::move(inside_net);
  }
  chained->library_ = std::move(*library);
  if (IsThisObject(chained->library_)) return MakeError(ErrorKind::kNotFound, "that is this object itself");
  if (!FindTuner(chained->library_, chained->tuner_)) {
    return MakeError(ErrorKind::kUnsupported, "{} has none of ncclTunerPlugin_v2 to _v6",
                     named.empty() ? "the plugin that NCCL would load" : named);
  }
  return chained;
}

ncclResult_t ChainedTuner::Init(const TunerInit& init, void** context) const {
  return tuner_.functions.init(context, init.communicator, init.n_ranks, init.n_nodes, init.logger,
                               init.nvl_domains, init.constants);
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
