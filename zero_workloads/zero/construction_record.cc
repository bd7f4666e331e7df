// SPDX-License-Identifier: Apache-2.0
// A fallback of LibTorch's dispatcher sees each operation of the constructing thread and passes it to the
// record. A memory is identified by its StorageImpl, so that views and tensor.data() count as the tensor
// itself.
#include "zero_workloads/zero/construction_record.h"

#include <ATen/CPUGeneratorImpl.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/empty_strided.h>
#include <c10/core/GradMode.h>
#include <c10/core/impl/LocalDispatchKeySet.h>
#include <c10/util/StringUtil.h>
#include <torch/library.h>

#include <algorithm>
#include <array>
#include <mutex>
#include <stdexcept>
#include <string_view>

namespace dynamiccl::zero {
namespace {

// A key that LibTorch keeps free for fallbacks like this one; parameter_watch.cc has the other such key.
constexpr c10::DispatchKey kKey = c10::DispatchKey::TESTING_ONLY_GenericWrapper;

// The record of the construction on this thread; null if there is none.
thread_local ConstructionRecord* recording = nullptr;

void RecordedOperation(const c10::OperatorHandle& handle, torch::jit::Stack* stack) {
  const c10::impl::ExcludeDispatchKeyGuard unrecorded(kKey);
  // LibTorch's own threads inherit the key, but construct no part of the module.
  if (recording == nullptr) return handle.callBoxed(stack);
  recording->Operate(handle, stack);
}

// Operations that give every element of their first argument a new value without reading the old one.
constexpr std::array<std::string_view, 11> kOverwriting = {
    "aten::uniform_", "aten::normal_",     "aten::random_",    "aten::exponential_",
    "aten::cauchy_",  "aten::log_normal_", "aten::geometric_", "aten::zero_",
    "aten::fill_",    "aten::copy_",       "aten::bernoulli_"};

bool Overwrites(const c10::OperatorHandle& handle) {
  const std::string& name = handle.schema().name();
  return std::find(kOverwriting.begin(), kOverwriting.end(), name) != kOverwriting.end();
}

// Returns a tensor with the shape of `like` and the memory of `storage`.
at::Tensor Over(const c10::Storage& storage, const at::Tensor& like, c10::DispatchKey key) {
  at::Tensor tensor =
      at::detail::make_tensor<c10::TensorImpl>(c10::Storage(storage), c10::DispatchKeySet(key), like.dtype());
  tensor.unsafeGetTensorImpl()->set_sizes_and_strides(like.sizes(), like.strides(), like.storage_offset());
  return tensor;
}

bool SameShape(const at::Tensor& a, const at::Tensor& b) {
  return a.sizes() == b.sizes() && a.strides() == b.strides() && a.storage_offset() == b.storage_offset();
}

// Replaces each tensor in `value`, which may be a list.
c10::IValue Replaced(const c10::IValue& value, const std::function<at::Tensor(const at::Tensor&)>& replace) {
  const auto one = [&](const at::Tensor& tensor) { return tensor.defined() ? replace(tensor) : tensor; };
  if (value.isTensor()) return one(value.toTensor());
  if (value.isTensorList()) {
    c10::List<at::Tensor> list;
    for (const at::Tensor& tensor : value.toTensorVector()) list.push_back(one(tensor));
    return list;
  }
  if (value.isOptionalTensorList()) {
    c10::List<std::optional<at::Tensor>> list;
    for (const std::optional<at::Tensor>& tensor : value.toOptionalTensorList()) {
      list.push_back(tensor ? std::optional(one(*tensor)) : tensor);
    }
    return list;
  }
  return value;
}

void ForEachTensor(const c10::IValue& value, const std::function<void(const at::Tensor&)>& visit) {
  Replaced(value, [&](const at::Tensor& tensor) { return visit(tensor), tensor; });
}

int64_t VersionOf(const at::Tensor& tensor) {
  return tensor.is_inference() ? 0 : tensor._version();
}

at::Tensor StateOf(at::Generator generator) {
  const std::lock_guard lock(generator.mutex());
  return generator.get_state();
}

// Puts a generator into another state, and back at the end of the object's life.
class InState {
 public:
  InState(const at::Generator& generator, const at::Tensor& state) : generator_(generator) {
    if (!generator_.defined()) return;
    before_ = StateOf(generator_);
    Set(state);
  }
  ~InState() {
    if (generator_.defined()) Set(before_);
  }
  InState(const InState&) = delete;
  InState& operator=(const InState&) = delete;

 private:
  void Set(const at::Tensor& state) {
    const std::lock_guard lock(generator_.mutex());
    generator_.set_state(state);
  }
  at::Generator generator_;
  at::Tensor before_;
};

}  // namespace

TORCH_LIBRARY_IMPL(_, TESTING_ONLY_GenericWrapper, library) {
  library.fallback(torch::CppFunction::makeFromBoxedFunction<&RecordedOperation>());
}

// Runs recorded operations on memory of its own.
class ConstructionRecord::Replay {
 public:
  explicit Replay(const ConstructionRecord& record) : record_(record) {}

  void Run(std::set<Memory> memories) {
    for (const size_t index : record_.Needed(std::move(memories), record_.operations_.size())) {
      Run(record_.operations_[index]);
    }
  }

  // Returns a tensor with memory that stands for a hollow tensor. Other tensors have memory already and are
  // returned.
  at::Tensor Real(const at::Tensor& tensor) {
    if (!record_.IsHollow(tensor)) return tensor;
    const Memory memory = tensor.storage().unsafeGetStorageImpl();
    auto place = real_.find(memory);
    if (place == real_.end()) {
      const auto bytes = static_cast<int64_t>(record_.memories_.at(memory).meta.nbytes());
      place = real_.emplace(memory, at::empty({bytes}, at::kByte).storage()).first;
    }
    return Over(place->second, tensor, c10::DispatchKey::CPU);
  }

  // The hollow memory for which `real` stands; null if there is none.
  Memory HollowOf(const at::Tensor& real) const {
    const Memory storage = real.storage().unsafeGetStorageImpl();
    for (const auto& [memory, stand_in] : real_) {
      if (stand_in.unsafeGetStorageImpl() == storage) return memory;
    }
    return nullptr;
  }

 private:
  void Run(const Operation& operation) {
    for (const auto& [constant, version] : operation.constants) {
      if (VersionOf(constant) == version) continue;
      throw std::invalid_argument(
          c10::str(record_.Name(operation.handle), " used a tensor ", constant.sizes(),
                   " from outside of the construction, which was changed since then"));
    }
    torch::jit::Stack stack;
    for (const c10::IValue& argument : operation.arguments) {
      stack.push_back(Replaced(argument, [this](const at::Tensor& tensor) { return Real(tensor); }));
    }
    const InState drawing(operation.generator, operation.state);
    operation.handle.callBoxed(&stack);
    Adopt(operation, stack);
  }

  // Lets the memory that the operation allocated for its results stand for the hollow memory of these
  // results.
  void Adopt(const Operation& operation, const torch::jit::Stack& stack) {
    size_t next = 0;
    for (const c10::IValue& value : stack) {
      ForEachTensor(value, [&](const at::Tensor& real) {
        const at::Tensor& hollow = operation.results[next++];
        if (!SameShape(real, hollow)) {
          throw std::logic_error(record_.Name(operation.handle) + " has another layout than when recorded");
        }
        real_.emplace(hollow.storage().unsafeGetStorageImpl(), real.storage());
      });
    }
  }

  const ConstructionRecord& record_;
  std::map<Memory, c10::Storage> real_;
};

ConstructionRecord::ConstructionRecord(const std::function<void()>& construct) {
  ConstructionRecord* const outer = std::exchange(recording, this);
  const c10::impl::IncludeDispatchKeyGuard recorded(kKey);
  try {
    construct();
  } catch (...) {
    recording = outer;
    throw;
  }
  recording = outer;
}

std::string ConstructionRecord::Name(const c10::OperatorHandle& handle) const {
  return "operation " + handle.schema().name();
}

bool ConstructionRecord::IsHollow(const at::Tensor& tensor) const {
  return tensor.defined() && tensor.has_storage() &&
         memories_.contains(tensor.storage().unsafeGetStorageImpl());
}

std::vector<at::Tensor> ConstructionRecord::Values(std::span<const at::Tensor> tensors) const {
  const c10::NoGradGuard no_gradients;
  std::set<Memory> memories;
  for (const at::Tensor& tensor : tensors) {
    if (IsHollow(tensor)) memories.insert(tensor.storage().unsafeGetStorageImpl());
  }
  Replay replay(*this);
  replay.Run(std::move(memories));
  std::vector<at::Tensor> values;
  for (const at::Tensor& tensor : tensors) values.push_back(replay.Real(tensor));
  return values;
}

std::vector<size_t> ConstructionRecord::Needed(std::set<Memory> memories, size_t end) const {
  std::vector<size_t> needed;
  for (size_t index = end; index-- > 0 && !memories.empty();) {
    const Operation& operation = operations_[index];
    const auto wanted = [&](Memory memory) { return memories.contains(memory); };
    if (std::none_of(operation.writes.begin(), operation.writes.end(), wanted)) continue;
    needed.push_back(index);
    for (const Memory memory : operation.begins) memories.erase(memory);
    memories.insert(operation.reads.begin(), operation.reads.end());
  }
  std::reverse(needed.begin(), needed.end());
  return needed;
}

bool ConstructionRecord::Concerns(const c10::FunctionSchema& schema,
                                  std::span<const c10::IValue> arguments) const {
  bool concerns = false;
  for (size_t i = 0; i < arguments.size(); ++i) {
    if (schema.arguments()[i].name() == "device") concerns = true;
    ForEachTensor(arguments[i], [&](const at::Tensor& tensor) { concerns |= IsHollow(tensor); });
  }
  return concerns;
}

void ConstructionRecord::NoteArgument(size_t index, const c10::IValue& argument, Operation* operation) const {
  const c10::AliasInfo* alias = operation->handle.schema().arguments()[index].alias_info();
  const bool written = alias != nullptr && alias->isWrite();
  const bool overwritten = index == 0 && Overwrites(operation->handle);
  ForEachTensor(argument, [&](const at::Tensor& tensor) {
    if (!IsHollow(tensor)) return operation->constants.emplace_back(tensor, VersionOf(tensor)), void();
    const Memory memory = tensor.storage().unsafeGetStorageImpl();
    if (written) operation->writes.insert(memory);
    if (!overwritten) operation->reads.insert(memory);
    const size_t bytes = static_cast<size_t>(tensor.numel()) * tensor.element_size();
    const bool whole = tensor.is_non_overlapping_and_dense() && bytes == memories_.at(memory).meta.nbytes();
    if (overwritten && whole) operation->begins.insert(memory);
  });
}

ConstructionRecord::Operation ConstructionRecord::Describe(const c10::OperatorHandle& handle,
                                                           std::span<const c10::IValue> arguments) const {
  Operation operation{handle, {}, {}, {}, {}, {}, {}, {}, {}};
  bool draws = handle.hasTag(at::Tag::nondeterministic_seeded);
  at::Generator generator = at::detail::getDefaultCPUGenerator();
  for (size_t i = 0; i < arguments.size(); ++i) {
    if (arguments[i].isDevice() && !arguments[i].toDevice().is_cpu()) {
      throw std::invalid_argument(c10::str(Name(handle), " of the construction asks for memory on ",
                                           arguments[i].toDevice().str(),
                                           ": construct the module for the CPU, the engine moves it"));
    }
    if (arguments[i].isGenerator()) generator = arguments[i].toGenerator();
    NoteArgument(i, arguments[i], &operation);
    operation.arguments.push_back(Replaced(arguments[i], [&](const at::Tensor& tensor) {
      return IsHollow(tensor) ? Over(tensor.storage(), tensor, c10::DispatchKey::CPU) : tensor;
    }));
  }
  // If an operation also reads a memory that it overwrites, as x.copy_(x) does, the earlier content matters.
  for (const Memory memory : operation.reads) operation.begins.erase(memory);
  if (draws) {
    operation.generator = generator;
    operation.state = StateOf(generator);
  }
  return operation;
}

void ConstructionRecord::Operate(const c10::OperatorHandle& handle, torch::jit::Stack* stack) {
  const size_t count = handle.schema().arguments().size();
  const auto last = torch::jit::last(*stack, count);
  const std::vector<c10::IValue> arguments(last.begin(), last.end());
  if (!Concerns(handle.schema(), arguments)) return handle.callBoxed(stack);
  torch::jit::drop(*stack, count);
  const c10::NoGradGuard no_gradients;
  Operation operation = Describe(handle, arguments);
  Twins twins;
  torch::jit::Stack results;
  if (!operation.generator.defined() && RunOnMeta(operation, arguments, &twins, &results)) {
    const auto find = [this](const at::Tensor& twin) -> Memory {
      const auto place = hollow_of_meta_.find(twin.storage().unsafeGetStorageImpl());
      return place == hollow_of_meta_.end() ? nullptr : place->second;
    };
    Finish(std::move(operation), twins, find, &results);
  } else {
    Replay replay(*this);
    twins.clear();
    RunOnValues(operation, arguments, &replay, &twins, &results);
    const auto find = [&](const at::Tensor& twin) { return replay.HollowOf(twin); };
    Finish(std::move(operation), twins, find, &results);
  }
  for (c10::IValue& result : results) stack->push_back(std::move(result));
}

bool ConstructionRecord::RunOnMeta(const Operation& operation, std::span<const c10::IValue> arguments,
                                   Twins* twins, torch::jit::Stack* results) {
  const c10::FunctionSchema& schema = operation.handle.schema();
  for (size_t i = 0; i < arguments.size(); ++i) {
    const c10::AliasInfo* alias = schema.arguments()[i].alias_info();
    bool possible = true;
    c10::IValue twin = Replaced(arguments[i], [&](const at::Tensor& tensor) {
      if (IsHollow(tensor)) {
        const c10::Storage& meta = memories_.at(tensor.storage().unsafeGetStorageImpl()).meta;
        return twins->emplace_back(tensor, Over(meta, tensor, c10::DispatchKey::Meta)).second;
      }
      // The meta device cannot change a tensor that has memory: the operation must run on values.
      possible &= alias == nullptr || !alias->isWrite();
      return at::empty_strided(tensor.sizes(), tensor.strides(), tensor.options().device(at::kMeta));
    });
    if (!possible) return false;
    if (schema.arguments()[i].name() == "device") twin = at::Device(at::kMeta);
    results->push_back(std::move(twin));
  }
  try {
    operation.handle.callBoxed(results);
  } catch (const c10::Error&) {
    // The operation needs values, or has no implementation for the meta device. If the operation is wrong in
    // itself, the run on values reports the error.
    results->clear();
    return false;
  }
  return true;
}

void ConstructionRecord::RunOnValues(const Operation& operation, std::span<const c10::IValue> arguments,
                                     Replay* replay, Twins* twins, torch::jit::Stack* results) {
  replay->Run(operation.reads);
  for (const c10::IValue& argument : arguments) {
    results->push_back(Replaced(argument, [&](const at::Tensor& tensor) {
      return twins->emplace_back(tensor, replay->Real(tensor)).second;
    }));
  }
  operation.handle.callBoxed(results);
}

ConstructionRecord::Memory ConstructionRecord::AddMemory(const c10::Storage& meta, const at::Tensor& tensor,
                                                         const Operation& operation) {
  c10::Storage hollow(c10::Storage::use_byte_size_t(), meta.nbytes(), at::DataPtr(nullptr, at::kCPU),
                      /*allocator=*/nullptr, /*resizable=*/false);
  const Memory memory = hollow.unsafeGetStorageImpl();
  hollow.unsafeGetStorageImpl()->release_data_and_set_meta_custom_data_ptr_error_msg_(c10::str(
      "the tensor ", tensor.sizes(), " that ", Name(operation.handle),
      " made while a DeferredModule was constructed has no memory yet. The constructor may not use pointers "
      "to values there (data_ptr, accessor, torch::tensor of a std::vector): make such a tensor outside and "
      "capture it. A tensor that forward() needs must be a registered parameter or buffer."));
  hollow_of_meta_[meta.unsafeGetStorageImpl()] = memory;
  memories_.emplace(memory, StandIns{std::move(hollow), meta});
  return memory;
}

void ConstructionRecord::Finish(Operation operation, const Twins& twins,
                                const std::function<Memory(const at::Tensor&)>& find,
                                torch::jit::Stack* results) {
  for (const auto& [tensor, twin] : twins) {
    if (IsHollow(tensor) && !SameShape(tensor, twin)) {
      tensor.unsafeGetTensorImpl()->set_sizes_and_strides(twin.sizes(), twin.strides(),
                                                          twin.storage_offset());
    }
  }
  for (c10::IValue& result : *results) {
    result = Replaced(result, [&](const at::Tensor& made) {
      for (const auto& [tensor, twin] : twins) {
        if (!made.is_same(twin)) continue;
        operation.results.push_back(Over(tensor.storage(), tensor, c10::DispatchKey::CPU));
        return tensor;
      }
      Memory memory = find(made);
      if (memory == nullptr) {
        const auto bytes = static_cast<int64_t>(made.storage().nbytes());
        const c10::Storage meta =
            made.is_meta() ? made.storage()
                           : at::empty({bytes}, at::TensorOptions(at::kMeta).dtype(at::kByte)).storage();
        memory = AddMemory(meta, made, operation);
        operation.writes.insert(memory);
        operation.begins.insert(memory);
      }
      const c10::Storage& hollow = memories_.at(memory).hollow;
      operation.results.push_back(Over(hollow, made, c10::DispatchKey::CPU));
      return Over(hollow, made, c10::DispatchKey::CPU);
    });
  }
  if (!operation.writes.empty()) operations_.push_back(std::move(operation));
}

}  // namespace dynamiccl::zero
