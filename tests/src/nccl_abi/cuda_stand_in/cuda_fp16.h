// SPDX-License-Identifier: Apache-2.0
// nccl.h includes this for device code only.
#pragma once
