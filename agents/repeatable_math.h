// SPDX-License-Identifier: Apache-2.0
// Arithmetic for trainings that gives the same bits on every x86-64 processor with AVX2 and with any number
// of threads. LibTorch's matrix products, roots, logarithms and tanh differ between processors: they come
// from MKL, whose kernels depend on the processor's maker and model. Trainings use none of them.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <vector>

namespace dynamiccl::agents {

// Returns true if this processor has AVX2, with which results are equal on all processors.
bool HasAvx2();
// Makes LibTorch's own kernels use AVX2, even if the processor has more, and plain code if it has less. A
// program calls this before its first operation on tensors, since LibTorch chooses its kernels then.
void UseRepeatableKernels();

// Matrices in row-major order: [rows, inner] times [inner, columns].
struct ProductShape {
  int64_t rows, inner, columns;
};
// Adds a b to `sum`. Each element is summed from the first inner index to the last.
void AddProduct(const float* a, const float* b, float* sum, const ProductShape& shape);
// Adds a' b to `sum`, where `a` is stored as [inner, rows]. The order of the additions is that of AddProduct.
void AddTransposedProduct(const float* a, const float* b, float* sum, const ProductShape& shape);

// Computes what at::linear does: inputs [..., in] times weights [out, in] transposed, plus bias [out], with
// gradients. All are fp32.
at::Tensor RepeatableLinear(const at::Tensor& inputs, const at::Tensor& weights, const at::Tensor& bias);

// Adam (Kingma and Ba, ICLR 2015) with the usual constants. The learning rate decays to zero along a cosine.
// One thread.
class Adam {
 public:
  // The gradient of a parameter grows by `weight_decay` times the parameter.
  Adam(std::vector<at::Tensor> parameters, double learning_rate, double weight_decay = 0);
  void ZeroGradients();
  // Changes the parameters by their gradients. `progress` says how much of the training is done, from 0 to 1.
  void Step(double progress);

 private:
  // A parameter and the means of its gradients and of their squares.
  struct Moments {
    at::Tensor parameter, mean, square;
  };
  std::vector<Moments> moments_;
  double learning_rate_, weight_decay_;
  int steps_ = 0;
};

}  // namespace dynamiccl::agents
