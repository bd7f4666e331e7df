// SPDX-License-Identifier: Apache-2.0
// Each group is created by one ncclCommSplit. Its color is the group's number, and its key is the rank's
// place in the group.
#include "zero_workloads/parallel/grid.h"

namespace dynamiccl::zero {

Status CheckTensorDegree(int tensor_degree, int world) {
  if (tensor_degree >= 1 && world % tensor_degree == 0) return {};
  return WithHint(MakeError(ErrorKind::kInvalidArgument, "--tensor-parallel {} does not divide {} rank(s)",
                            tensor_degree, world),
                  tensor_degree > world ? fmt::format("start {} ranks, or a multiple of it", tensor_degree)
                                        : "take a divisor of the number of ranks");
}

namespace {

// Lists the divisors of a number for hints: "1, 2, 4, 8".
std::string Divisors(int number) {
  std::string text;
  for (int divisor = 1; divisor <= number; ++divisor) {
    if (number % divisor == 0) text += (text.empty() ? "" : ", ") + std::to_string(divisor);
  }
  return text;
}

}  // namespace

Status CheckShardGroups(const GridSizes& sizes, int data_ranks) {
  const int shard = sizes.shard == 0 ? data_ranks : sizes.shard;
  if (shard < 1 || data_ranks % shard != 0) {
    return WithHint(MakeError(ErrorKind::kInvalidArgument, "--shard-group {} does not divide {} data rank(s)",
                              sizes.shard, data_ranks),
                    "these do: " + Divisors(data_ranks));
  }
  if (sizes.secondary == 0 || (sizes.secondary > 0 && shard % sizes.secondary == 0)) return {};
  return WithHint(
      MakeError(ErrorKind::kInvalidArgument,
                "--secondary-group {} does not divide the {} rank(s) that parameters are divided over",
                sizes.secondary, shard),
      "these do: " + Divisors(shard));
}

Result<std::unique_ptr<Grid>> Grid::Create(const RankEnvironment& environment, const GridSizes& sizes,
                                           int zero_stage, const JoinSettings& join) {
  DYNAMICCL_CHECK_OK(CheckTensorDegree(sizes.tensor, environment.world));
  DYNAMICCL_CHECK_OK(CheckShardGroups(sizes, environment.world / sizes.tensor));
  DYNAMICCL_TRY(auto world, ProcessGroup::Create(environment, zero_stage, join));
  std::unique_ptr<Grid> grid(new Grid(std::move(world)));
  if (sizes.tensor > 1) {
    const int data_rank = environment.rank / sizes.tensor, tensor_rank = environment.rank % sizes.tensor;
    DYNAMICCL_TRY(grid->data_, grid->world_->Split(tensor_rank, data_rank));
    DYNAMICCL_TRY(grid->tensor_, grid->world_->Split(data_rank, tensor_rank));
  }
  DYNAMICCL_CHECK_OK(grid->SplitData(sizes));
  return grid;
}

Status Grid::SplitData(const GridSizes& sizes) {
  const int rank = data()->rank();
  if (sizes.shard > 0 && sizes.shard < data()->world()) {
    DYNAMICCL_TRY(shard_, data()->Split(rank / sizes.shard, rank));
    DYNAMICCL_TRY(replicas_, data()->Split(rank % sizes.shard, rank));
  }
  if (sizes.secondary > 0) {
    DYNAMICCL_TRY(secondary_, data()->Split(rank / sizes.secondary, rank));
  }
  return {};
}

std::vector<ProcessGroup*> Grid::Groups() const {
  std::vector<ProcessGroup*> groups;
  for (const auto* group : {&tensor_, &secondary_, &shard_, &replicas_, &data_, &world_}) {
    if (*group != nullptr) groups.push_back(group->get());
  }
  return groups;
}

void Grid::SetStep(int64_t step) {
  for (ProcessGroup* group : Groups()) group->SetStep(step);
}

int64_t Grid::sent_bytes() const {
  int64_t bytes = 0;
  for (const ProcessGroup* group : Groups()) bytes += group->sent_bytes();
  return bytes;
}

void Grid::Abort() {
  for (ProcessGroup* group : Groups()) group->Abort();
}

}  // namespace dynamiccl::zero
