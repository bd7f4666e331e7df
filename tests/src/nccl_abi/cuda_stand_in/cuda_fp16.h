// SPDX-License-Identifier: Apache-2.0
// nccl.h includes this header only for device code.
#pragma once
