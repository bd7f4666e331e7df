// SPDX-License-Identifier: Apache-2.0
// LibTorch's dispatcher calls WatchedOperation for every operation on a thread on which the dispatch key kKey
// is included. Finding the unit of a tensor argument costs a shared lock and a hash lookup.
#include "zero_workloads/zero/parameter_watch.h"

#include <ATen/core/stack.h>
#include <c10/core/impl/LocalDispatchKeySet.h>
#include <torch/library.h>

#include <algorithm>
#include <map>
#include <shared_mutex>
#include <unordered_map>

namespace dynamiccl::zero {
namespace {

// The dispatch key of the highest priority: a fallback for this key sees an operation before autograd does.
constexpr c10::DispatchKey kKey = c10::DispatchKey::TESTING_ONLY_GenericMode;

// The watch to which a storage was added, and the number of its unit in that watch.
struct Watched {
  const ParameterWatch::Read* read = nullptr;
  int unit = 0;
};

// Watched storages of all watches in the process. They are global because a backward pass may run on a thread
// that has no access to the watches.
struct Storages {
  std::shared_mutex mutex;
  std::unordered_map<const c10::StorageImpl*, Watched> watched;
};

Storages& AllStorages() {
  static Storages storages;
  return storages;
}

// Collects the units whose parameters one operation reads, for each watch, and then reports them.
class Found {
 public:
  void Look(const at::Tensor& tensor) {
    if (!tensor.defined() || !tensor.has_storage()) return;
    Storages& storages = AllStorages();
    const std::shared_lock lock(storages.mutex);
    const auto place = storages.watched.find(tensor.storage().unsafeGetStorageImpl());
    if (place == storages.watched.end()) return;
    std::vector<int>& units = units_[place->second.read];
    if (std::find(units.begin(), units.end(), place->second.unit) == units.end()) {
      units.push_back(place->second.unit);
    }
  }

  void Look(const c10::IValue& value) {
    if (value.isTensor()) return Look(value.toTensor());
    if (value.isTensorList()) {
      for (const at::Tensor& tensor : value.toTensorList()) Look(tensor);
    } else if (value.isOptionalTensorList()) {
      for (const std::optional<at::Tensor>& tensor : value.toOptionalTensorList()) {
        if (tensor) Look(*tensor);
      }
    }
  }

  void Tell() const {
    for (const auto& [read, units] : units_) (*read)(units);
  }

 private:
  std::map<const ParameterWatch::Read*, std::vector<int>> units_;
};

// Reports the watched tensors among the operation's arguments, then runs the operation. Meanwhile the
// dispatch key is excluded, so that operations inside this operation are not reported.
void WatchedOperation(const c10::OperatorHandle& operation, torch::jit::Stack* stack) {
  const c10::impl::ExcludeDispatchKeyGuard unwatched(kKey);
  Found found;
  for (const c10::IValue& argument : torch::jit::last(*stack, operation.schema().arguments().size())) {
    found.Look(argument);
  }
  found.Tell();
  operation.callBoxed(stack);
}

}  // namespace

TORCH_LIBRARY_IMPL(_, TESTING_ONLY_GenericMode, library) {
  library.fallback(torch::CppFunction::makeFromBoxedFunction<&WatchedOperation>());
}

ParameterWatch::~ParameterWatch() {
  Storages& storages = AllStorages();
  const std::unique_lock lock(storages.mutex);
  for (const at::Tensor& flat : watched_) storages.watched.erase(flat.storage().unsafeGetStorageImpl());
}

void ParameterWatch::Add(const at::Tensor& flat, int unit) {
  watched_.push_back(flat);
  Storages& storages = AllStorages();
  const std::unique_lock lock(storages.mutex);
  storages.watched[flat.storage().unsafeGetStorageImpl()] = {&read_, unit};
}

void ParameterWatch::Run(const std::function<void()>& body) const {
  const c10::impl::IncludeDispatchKeyGuard watched(kKey);
  body();
}

}  // namespace dynamiccl::zero
