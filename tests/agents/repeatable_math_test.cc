// SPDX-License-Identifier: Apache-2.0
#include "agents/repeatable_math.h"

#include <ATen/CPUGeneratorImpl.h>
#include <ATen/TensorOperators.h>
#include <ATen/Version.h>
#include <ATen/ops/allclose.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/linear.h>
#include <gtest/gtest.h>
#include <torch/csrc/autograd/autograd.h>

#include "agents/structure/bounded_lstm.h"

#define XXH_INLINE_ALL
#include <xxhash.h>

namespace dynamiccl::agents {
namespace {

at::Tensor Random(at::IntArrayRef sizes, uint64_t seed) {
  return at::empty(sizes).uniform_(-1, 1, at::detail::createCPUGenerator(seed));
}

// Adds the product element by element, from the first inner index to the last.
at::Tensor InOrder(const at::Tensor& a, const at::Tensor& b, const at::Tensor& begin) {
  at::Tensor sum = begin.clone();
  const auto of = [](const at::Tensor& matrix, int64_t row, int64_t column) {
    return matrix.const_data_ptr<float>()[row * matrix.size(1) + column];
  };
  for (int64_t i = 0; i < a.size(0); ++i)
    for (int64_t j = 0; j < b.size(1); ++j)
      for (int64_t k = 0; k < b.size(0); ++k)
        sum.data_ptr<float>()[i * b.size(1) + j] += of(a, i, k) * of(b, k, j);
  return sum;
}

TEST(RepeatableMath, ProductsAddInOrderToTheBit) {
  for (const ProductShape& shape : {ProductShape{1, 1, 1}, {3, 5, 70}, {48, 32, 128}, {7, 200, 33}}) {
    const at::Tensor a = Random({shape.rows, shape.inner}, 1), b = Random({shape.inner, shape.columns}, 2);
    at::Tensor sum = Random({shape.rows, shape.columns}, 3), again = sum.clone();
    const at::Tensor expected = InOrder(a, b, sum), turned = a.t().contiguous();
    AddProduct(a.const_data_ptr<float>(), b.const_data_ptr<float>(), sum.data_ptr<float>(), shape);
    AddTransposedProduct(turned.const_data_ptr<float>(), b.const_data_ptr<float>(), again.data_ptr<float>(),
                         shape);
    EXPECT_TRUE(at::equal(sum, expected));
    EXPECT_TRUE(at::equal(again, expected));
  }
}

TEST(RepeatableMath, LinearIsLibTorchsWithItsGradients) {
  const at::Tensor inputs = Random({3, 40, 16}, 4).requires_grad_(true),
                   weights = Random({68, 16}, 5).requires_grad_(true),
                   bias = Random({68}, 6).requires_grad_(true), factors = Random({3, 40, 68}, 7);
  const at::Tensor ours = RepeatableLinear(inputs, weights, bias), theirs = at::linear(inputs, weights, bias);
  EXPECT_TRUE(at::allclose(ours, theirs, 1e-5, 1e-6));
  const std::vector<at::Tensor> of = {inputs, weights, bias}, sum = {(ours * factors).sum()},
                                their_sum = {(theirs * factors).sum()};
  const auto gradients = torch::autograd::grad(sum, of), expected = torch::autograd::grad(their_sum, of);
  for (size_t i = 0; i < of.size(); ++i)
    EXPECT_TRUE(at::allclose(gradients[i], expected[i], 1e-4, 1e-5)) << i;
}

uint64_t Bits(const at::Tensor& tensor) {
  const at::Tensor whole = tensor.detach().contiguous();
  return XXH3_64bits(whole.const_data_ptr(), whole.nbytes());
}

// The numbers are those of one machine. Any other x86-64 processor with AVX2 must find the same.
TEST(RepeatableMath, ALayerAndItsGradientsHaveTheseBitsOnEveryProcessor) {
  if (!HasAvx2()) GTEST_SKIP() << "this processor has no AVX2";
  ASSERT_EQ(at::get_cpu_capability(), "AVX2") << "LibTorch chose its kernels before UseRepeatableKernels";
  const at::Tensor inputs = Random({48, 64, 16}, 8), weights = Random({128, 16}, 9).requires_grad_(true),
                   hidden = Random({128, 32}, 10).requires_grad_(true),
                   bias = Random({128}, 11).requires_grad_(true);
  const at::Tensor states = BoundedLstm(RepeatableLinear(inputs, weights, bias), hidden, 7.99);
  const std::vector<at::Tensor> of = {weights, hidden, bias}, sum = {(states * states).sum()};
  const auto gradients = torch::autograd::grad(sum, of);
  EXPECT_EQ(Bits(states), 1277074111875248941u);
  EXPECT_EQ(Bits(gradients[0]), 1903277192940414667u);
  EXPECT_EQ(Bits(gradients[1]), 299246925136978539u);
  EXPECT_EQ(Bits(gradients[2]), 4059182302963403739u);
}

}  // namespace
}  // namespace dynamiccl::agents
