// SPDX-License-Identifier: Apache-2.0
#include "zero_workloads/parallel/grid.h"

namespace dynamiccl::zero {

Status CheckTensorDegree(int tensor_degree, int world) {
  if (tensor_degree >= 1 && world % tensor_degree == 0) return {};
  return WithHint(MakeError(ErrorKind::kInvalidArgument, "--tensor-parallel {} does not divide {} rank(s)",
                            tensor_degree, world),
                  tensor_degree > world ? fmt::format("start {} ranks, or a multiple of it", tensor_degree)
                                        : "take a divisor of the number of ranks");
}

Result<std::unique_ptr<Grid>> Grid::Create(const RankEnvironment& environment, int tensor_degree,
                                           int zero_stage, const JoinSettings& join) {
  DYNAMICCL_CHECK_OK(CheckTensorDegree(tensor_degree, environment.world));
  DYNAMICCL_TRY(auto world, ProcessGroup::Create(environment, zero_stage, join));
  std::unique_ptr<Grid> grid(new Grid(std::move(world)));
  if (tensor_degree == 1) return grid;
  const int data_rank = environment.rank / tensor_degree, tensor_rank = environment.rank % tensor_degree;
  DYNAMICCL_TRY(grid->data_, grid->world_->Split(tensor_rank, data_rank));
  DYNAMICCL_TRY(grid->tensor_, grid->world_->Split(data_rank, tensor_rank));
  return grid;
}

void Grid::SetStep(int64_t step) {
  for (ProcessGroup* group : {world_.get(), data_.get(), tensor_.get()}) {
    if (group != nullptr) group->SetStep(step);
  }
}

int64_t Grid::sent_bytes() const {
  int64_t bytes = 0;
  for (const ProcessGroup* group : {world_.get(), data_.get(), tensor_.get()}) {
    if (group != nullptr) bytes += group->sent_bytes();
  }
  return bytes;
}

void Grid::Abort() {
  // The groups in which ranks wait most first.
  for (ProcessGroup* group : {tensor_.get(), data_.get(), world_.get()}) {
    if (group != nullptr) group->Abort();
  }
}

}  // namespace dynamiccl::zero
