// SPDX-License-Identifier: Apache-2.0
// The products are compiled twice, for AVX2 and for every x86-64 processor. Vectors run along columns, and
// each column is a sum of its own. No multiplication is contracted with an addition. Both versions therefore
// give the same bits.
#include "agents/repeatable_math.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/zeros.h>
#include <ATen/ops/zeros_like.h>
#include <torch/csrc/autograd/custom_function.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <functional>
#include <numbers>
#include <utility>

#ifdef __x86_64__
#define DYNAMICCL_CLONES __attribute__((target_clones("avx2", "default")))
#else
#define DYNAMICCL_CLONES
#endif

namespace dynamiccl::agents {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

// These are Adam's usual constants: the shares of the gradients' mean and of their squares' mean that stay at
// each step, and the number that keeps the quotient finite.
constexpr double kMeanKept = 0.9, kSquareKept = 0.999, kLeastRoot = 1e-8;
// Number of columns whose sums fit into vector registers.
constexpr int64_t kBlock = 32;

// Returns the shape of the product of tensors whose rows are all dimensions but the last.
ProductShape ShapeOf(const at::Tensor& inputs, const at::Tensor& weights) {
  return {inputs.numel() / inputs.size(-1), weights.size(1), weights.size(0)};
}

at::Tensor Transposed(const at::Tensor& matrix) {
  return matrix.t().clone(at::MemoryFormat::Contiguous);
}

// Returns the sums of the columns, which are added row by row.
at::Tensor ColumnSums(const at::Tensor& rows, int64_t columns) {
  at::Tensor sums = at::zeros({columns});
  const float* row = rows.const_data_ptr<float>();
  float* sum = sums.data_ptr<float>();
  for (const float* end = row + rows.numel(); row != end; row += columns)
    std::transform(row, row + columns, sum, sum, std::plus<>());
  return sums;
}

struct Linear : torch::autograd::Function<Linear> {
  static at::Tensor forward(AutogradContext* context, const at::Tensor& inputs, const at::Tensor& weights,
                            const at::Tensor& bias) {
    const at::Tensor whole = inputs.contiguous(), turned = Transposed(weights);
    const ProductShape shape = ShapeOf(whole, weights);
    std::vector<int64_t> sizes = whole.sizes().vec();
    sizes.back() = shape.columns;
    at::Tensor outputs = bias.expand(sizes).clone(at::MemoryFormat::Contiguous);
    AddProduct(whole.const_data_ptr<float>(), turned.const_data_ptr<float>(), outputs.data_ptr<float>(),
               shape);
    context->save_for_backward({whole, weights});
    return outputs;
  }

  static variable_list backward(AutogradContext* context, const variable_list& outputs) {
    const variable_list saved = context->get_saved_variables();
    const at::Tensor inputs = saved[0], weights = saved[1].contiguous(), wanted = outputs[0].contiguous();
    const ProductShape forward = ShapeOf(inputs, weights);
    at::Tensor of_inputs;
    if (context->needs_input_grad(0)) {
      of_inputs = at::zeros(inputs.sizes());
      AddProduct(wanted.const_data_ptr<float>(), weights.const_data_ptr<float>(), of_inputs.data_ptr<float>(),
                 {forward.rows, forward.columns, forward.inner});
    }
    at::Tensor of_weights = at::zeros(weights.sizes());
    AddTransposedProduct(wanted.const_data_ptr<float>(), inputs.const_data_ptr<float>(),
                         of_weights.data_ptr<float>(), {forward.columns, forward.rows, forward.inner});
    return {of_inputs, of_weights, ColumnSums(wanted, forward.columns)};
  }
};

}  // namespace

bool HasAvx2() {
#ifdef __x86_64__
  return __builtin_cpu_supports("avx2") != 0;
#else
  return false;
#endif
}

void UseRepeatableKernels() {
  setenv("ATEN_CPU_CAPABILITY", HasAvx2() ? "avx2" : "default", 1);
}

DYNAMICCL_CLONES void AddProduct(const float* a, const float* b, float* sum, const ProductShape& shape) {
  for (int64_t row = 0; row < shape.rows; ++row) {
    const float* factors = a + row * shape.inner;
    for (int64_t first = 0; first < shape.columns; first += kBlock) {
      const int64_t width = std::min(kBlock, shape.columns - first);
      float* target = sum + row * shape.columns + first;
      const float* column = b + first;
      if (width == kBlock) {
        float sums[kBlock];
        std::copy_n(target, kBlock, sums);
        for (int64_t k = 0; k < shape.inner; ++k, column += shape.columns)
          for (int64_t j = 0; j < kBlock; ++j) sums[j] += factors[k] * column[j];
        std::copy_n(sums, kBlock, target);
      } else {
        for (int64_t k = 0; k < shape.inner; ++k, column += shape.columns)
          for (int64_t j = 0; j < width; ++j) target[j] += factors[k] * column[j];
      }
    }
  }
}

DYNAMICCL_CLONES void AddTransposedProduct(const float* a, const float* b, float* sum,
                                           const ProductShape& shape) {
  for (int64_t k = 0; k < shape.inner; ++k, a += shape.rows, b += shape.columns) {
    for (int64_t row = 0; row < shape.rows; ++row) {
      float* target = sum + row * shape.columns;
      for (int64_t j = 0; j < shape.columns; ++j) target[j] += a[row] * b[j];
    }
  }
}

at::Tensor RepeatableLinear(const at::Tensor& inputs, const at::Tensor& weights, const at::Tensor& bias) {
  return Linear::apply(inputs, weights, bias);
}

Adam::Adam(std::vector<at::Tensor> parameters, double learning_rate, double weight_decay)
    : learning_rate_(learning_rate), weight_decay_(weight_decay) {
  for (at::Tensor& parameter : parameters) {
    const at::Tensor zeros = at::zeros_like(parameter.detach());
    moments_.push_back({std::move(parameter), zeros.clone(), zeros.clone()});
  }
}

void Adam::ZeroGradients() {
  for (Moments& moments : moments_) moments.parameter.mutable_grad().reset();
}

void Adam::Step(double progress) {
  ++steps_;
  const double rate = learning_rate_ * 0.5 * (1 + std::cos(progress * std::numbers::pi));
  const auto size = static_cast<float>(rate / (1 - std::pow(kMeanKept, steps_)));
  const auto root_scale = static_cast<float>(1 / std::sqrt(1 - std::pow(kSquareKept, steps_)));
  constexpr auto kMean = static_cast<float>(kMeanKept), kSquare = static_cast<float>(kSquareKept);
  for (Moments& moments : moments_) {
    const at::Tensor gradients = moments.parameter.grad().contiguous();
    const float* gradient = gradients.const_data_ptr<float>();
    float *value = moments.parameter.data_ptr<float>(), *mean = moments.mean.data_ptr<float>(),
          *square = moments.square.data_ptr<float>();
    for (int64_t i = 0; i < gradients.numel(); ++i) {
      const float wanted = gradient[i] + static_cast<float>(weight_decay_) * value[i];
      mean[i] = kMean * mean[i] + (1 - kMean) * wanted;
      square[i] = kSquare * square[i] + (1 - kSquare) * wanted * wanted;
      value[i] -= size * mean[i] / (std::sqrt(square[i]) * root_scale + static_cast<float>(kLeastRoot));
    }
  }
}

}  // namespace dynamiccl::agents
