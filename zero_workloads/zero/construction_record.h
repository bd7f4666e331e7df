// SPDX-License-Identifier: Apache-2.0
// Records the operations that construct a module instead of giving memory to the module's tensors, and
// computes the values of single tensors later. PyTorch calls this deferred initialisation on the meta device.
//
// While a construction is recorded, each operation runs on LibTorch's meta device, which knows shapes alone.
// The module gets tensors of the CPU that have a shape and no memory (hollow tensors). An operation that
// draws random numbers also runs once on memory of its own, which is then freed. The generator therefore ends
// in the same state as after an ordinary construction, and its state before each such operation is known. The
// values of a tensor are computed by running the operations that they depend on, each from its recorded
// state.
#pragma once

#include <ATen/core/Tensor.h>
#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/core/stack.h>
#include <c10/core/Storage.h>

#include <functional>
#include <map>
#include <set>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace dynamiccl::zero {

// The operations of one construction. The program owns the record; all functions run on the thread that
// constructs. The constructed tensors may outlive the record, but have no memory until somebody gives them
// some.
class ConstructionRecord {
 public:
  // Runs `construct` and records it. An exception of `construct` passes through. An operation that asks for
  // another device than the CPU throws std::invalid_argument, which names the operation. Using a hollow
  // tensor's memory through a pointer throws c10::Error, which names the operation that made the tensor.
  explicit ConstructionRecord(const std::function<void()>& construct);
  ConstructionRecord(const ConstructionRecord&) = delete;
  ConstructionRecord& operator=(const ConstructionRecord&) = delete;

  // True if the tensor was made by the construction and has no memory yet.
  bool IsHollow(const at::Tensor& tensor) const;
  // Computes the values of hollow tensors, in memory of their own: bit by bit those of an ordinary
  // construction. Tensors that share memory in the module share it in the result. Needs memory for these
  // tensors and for those from which they are computed. The generators are unchanged afterwards.
  std::vector<at::Tensor> Values(std::span<const at::Tensor> tensors) const;

  // Runs one operation of the construction. Called by LibTorch's dispatcher.
  void Operate(const c10::OperatorHandle& handle, torch::jit::Stack* stack);

 private:
  // The identity of a hollow tensor's memory.
  using Memory = const c10::StorageImpl*;
  // The two stand-ins of one memory; both stay for as long as the record does, so addresses are not reused.
  struct StandIns {
    c10::Storage hollow, meta;
  };
  struct Operation {
    c10::OperatorHandle handle;
    // The arguments. A hollow tensor among them has the shape that it had when the operation was recorded.
    std::vector<c10::IValue> arguments;
    // The results; hollow tensors among them as in the arguments.
    std::vector<at::Tensor> results;
    // `reads`: the memories whose content the operation uses. `writes`: the memories that it changes or
    // makes. `begins`: those of `writes` whose earlier content does not matter afterwards.
    std::set<Memory> reads, writes, begins;
    // The generator from which the operation draws, and the generator's state before the operation. Undefined
    // if the operation draws no random numbers.
    at::Generator generator;
    at::Tensor state;
    // Those arguments that are tensors with memory, and their versions when the operation was recorded.
    std::vector<std::pair<at::Tensor, int64_t>> constants;
  };
  // Pairs of a tensor argument and the tensor that stands for it while an operation runs.
  using Twins = std::vector<std::pair<at::Tensor, at::Tensor>>;
  class Replay;

  // True if the operation would allocate memory for the module, or uses a hollow tensor.
  bool Concerns(const c10::FunctionSchema& schema, std::span<const c10::IValue> arguments) const;
  // Describes the operation before it runs: arguments, reads, writes and the generator's state.
  Operation Describe(const c10::OperatorHandle& handle, std::span<const c10::IValue> arguments) const;
  // Notes which memories the operation uses and changes through argument `index`.
  void NoteArgument(size_t index, const c10::IValue& argument, Operation* operation) const;
  // Runs the operation on the meta device, and returns false if LibTorch cannot do that.
  bool RunOnMeta(const Operation& operation, std::span<const c10::IValue> arguments, Twins* twins,
                 torch::jit::Stack* results);
  // Runs the operation on values. The new memories are registered with `replay`.
  void RunOnValues(const Operation& operation, std::span<const c10::IValue> arguments, Replay* replay,
                   Twins* twins, torch::jit::Stack* results);
  // Replaces stand-ins among the results by hollow tensors, and adds the operation to the record.
  void Finish(Operation operation, const Twins& twins, const std::function<Memory(const at::Tensor&)>& find,
              torch::jit::Stack* results);
  // Registers a memory that `operation` made; `meta` stands for it on the meta device.
  Memory AddMemory(const c10::Storage& meta, const at::Tensor& tensor, const Operation& operation);
  // The operations before `end`, in order, on which the content of the memories depends.
  std::vector<size_t> Needed(std::set<Memory> memories, size_t end) const;
  std::string Name(const c10::OperatorHandle& handle) const;

  std::vector<Operation> operations_;
  std::map<Memory, StandIns> memories_;
  // The hollow memory for each memory of the meta device.
  std::map<Memory, Memory> hollow_of_meta_;
};

}  // namespace dynamiccl::zero
