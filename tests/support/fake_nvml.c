// A driver's library that knows two GPUs, of which the second one has no sensors.

#include <string.h>

enum { kSuccess = 0, kNotSupported = 3, kNotFound = 6 };

static int is_started = 0;
static int gpus[2] = {0, 1};

int nvmlInit_v2(void) {
  is_started = 1;
  return kSuccess;
}

int nvmlShutdown(void) {
  is_started = 0;
  return kSuccess;
}

int nvmlDeviceGetHandleByIndex_v2(unsigned index, void** device) {
  if (!is_started || index > 1) {
    return kNotFound;
  }
  *device = &gpus[index];
  return kSuccess;
}

int nvmlDeviceGetHandleByUUID(const char* uuid, void** device) {
  return strcmp(uuid, "GPU-second") == 0 ? nvmlDeviceGetHandleByIndex_v2(1, device) : kNotFound;
}

int nvmlDeviceGetUtilizationRates(void* device, unsigned percents[2]) {
  percents[0] = *(int*)device == 0 ? 75 : 5;
  percents[1] = 40;
  return kSuccess;
}

int nvmlDeviceGetMemoryInfo(void* device, unsigned long long sizes[3]) {
  (void)device;
  sizes[0] = 8000000000ULL;  // all
  sizes[1] = 6000000000ULL;  // free
  sizes[2] = 2000000000ULL;  // used
  return kSuccess;
}

int nvmlDeviceGetPowerUsage(void* device, unsigned* milliwatts) {
  *milliwatts = 250500;
  return *(int*)device == 0 ? kSuccess : kNotSupported;
}

int nvmlDeviceGetTemperature(void* device, int sensor, unsigned* celsius) {
  *celsius = 61;
  return *(int*)device == 0 && sensor == 0 ? kSuccess : kNotSupported;
}
