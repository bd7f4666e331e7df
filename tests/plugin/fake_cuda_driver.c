/* SPDX-License-Identifier: Apache-2.0
   A stand-in for the CUDA driver with events and the state of stream capture. Event n completes n
   milliseconds after event n - 1, once `reached` is at least n. */
#define EXPORTED __attribute__((visibility("default")))
EXPORTED int captureStatus = 0;
EXPORTED int captureResult = 0;
EXPORTED int reached = 0;    /* events with a number up to this are reached */
EXPORTED int liveEvents = 0; /* events created and not destroyed */
EXPORTED int spoiled = 0;    /* calls that would have ended another thread's capture */
EXPORTED int failing = 0;    /* not 0: the result of every query */
EXPORTED int freeMiB = 0;    /* free memory of the device's 1024 MiB */

enum { kMost = 64, kRelaxed = 2, kNotReady = 600 };
static int numbers[kMost]; /* number of each event's last recording, from 1 */
static int made = 0, recorded = 0, mode = 0;

EXPORTED int cuStreamIsCapturing(void* stream, int* status);
EXPORTED int cuThreadExchangeStreamCaptureMode(int* other);
EXPORTED int cuEventCreate(void** event, unsigned flags);
EXPORTED int cuEventDestroy_v2(void* event);
EXPORTED int cuEventRecord(void* event, void* stream);
EXPORTED int cuEventQuery(void* event);
EXPORTED int cuEventElapsedTime(float* milliseconds, void* earlier, void* later);
EXPORTED int cuMemGetInfo_v2(unsigned long* free, unsigned long* total);

int cuStreamIsCapturing(void* stream, int* status) {
  (void)stream;
  *status = captureStatus;
  return captureResult;
}

int cuThreadExchangeStreamCaptureMode(int* other) {
  const int before = mode;
  mode = *other;
  *other = before;
  return 0;
}

int cuEventCreate(void** event, unsigned flags) {
  spoiled += mode != kRelaxed;
  *event = &numbers[made];
  ++liveEvents;
  return made++ < kMost && flags == 0 ? 0 : 1;
}

int cuEventDestroy_v2(void* event) {
  (void)event;
  --liveEvents;
  return 0;
}

int cuEventRecord(void* event, void* stream) {
  (void)stream;
  spoiled += mode != kRelaxed;
  *(int*)event = ++recorded;
  return 0;
}

int cuEventQuery(void* event) {
  spoiled += mode != kRelaxed;
  if (failing != 0) return failing;
  return *(int*)event <= reached ? 0 : kNotReady;
}

int cuMemGetInfo_v2(unsigned long* free, unsigned long* total) {
  spoiled += mode != kRelaxed;
  *free = (unsigned long)freeMiB << 20;
  *total = 1024ul << 20;
  return failing;
}

int cuEventElapsedTime(float* milliseconds, void* earlier, void* later) {
  *milliseconds = 0;
  for (int number = *(int*)earlier + 1; number <= *(int*)later; ++number) *milliseconds += (float)number;
  return 0;
}
