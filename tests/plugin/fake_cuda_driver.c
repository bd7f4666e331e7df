/* SPDX-License-Identifier: Apache-2.0
   A CUDA driver that knows one question: whether a stream is being captured. */
#define EXPORTED __attribute__((visibility("default")))
EXPORTED int captureStatus = 0;
EXPORTED int captureResult = 0;

EXPORTED int cuStreamIsCapturing(void* stream, int* status);
int cuStreamIsCapturing(void* stream, int* status) {
  (void)stream;
  *status = captureStatus;
  return captureResult;
}
