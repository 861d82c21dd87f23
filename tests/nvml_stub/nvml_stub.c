/* A library that answers as NVML does, loaded below the real pynvml: tests/nvml_stub/__init__.py builds and steers it.

   Settings are lines `KEY VALUE`, or `KEY@GPU VALUE` for one GPU, of the file that NVML_STUB names. It is read at each
   call, which lets a test change them while a program runs. The name of a function is a key too: the code it returns.
   With OLD_DRIVER defined, the functions that drivers before release 510 do not have are missing.
   Source: the structures and functions of nvml.h, as `pynvml` declares them. */

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>
#include <unistd.h>

enum { SUCCESS, UNINITIALIZED, INVALID_ARGUMENT, NOT_SUPPORTED, NOT_FOUND = 6, INSUFFICIENT_SIZE };
enum { DRIVER_NOT_LOADED = 9, ARGUMENT_VERSION_MISMATCH = 25 };
enum { SAMPLES = 100, MAX_GPUS = 16, MAX_SLICES = 8 };

typedef unsigned long long u64;
typedef struct { int gpu, slice; } Device; /* slice 0 is the whole GPU, others are of MIG */
typedef struct { u64 total, free, used; } Memory;
typedef struct { unsigned version; u64 total, reserved, free, used; } Memory2;
typedef struct { unsigned gpu, memory; } Utilization;
typedef struct { u64 time_us; union { double as_double; unsigned as_unsigned; u64 as_u64; } value; } Sample;
typedef struct { Device device; u64 time_us; } GpmSample;
typedef struct { const char *short_name, *long_name, *unit; } MetricInfo;
typedef struct { unsigned id, code; double value; MetricInfo info; } GpmMetric;
typedef struct { unsigned version, count; GpmSample *before, *now; GpmMetric metrics[]; } GpmMetrics;
typedef struct { unsigned version, supported; } GpmSupport;
typedef struct { unsigned pid; u64 used_bytes; unsigned gpu_instance, compute_instance; } Process;

static Device devices[MAX_GPUS][MAX_SLICES + 1];
static int initialized;

static double setting(int gpu, const char *key, double otherwise) {
    char line[256], name[128];
    double value, found = otherwise;
    int of, of_all = 1;
    FILE *file = fopen(getenv("NVML_STUB") ? getenv("NVML_STUB") : "", "r");
    if (!file) return otherwise;
    while (fgets(line, sizeof line, file)) {
        if (sscanf(line, "%127[^@ \n]@%d %lf", name, &of, &value) == 3) {
            if (of == gpu && !strcmp(name, key)) found = value, of_all = 0;
        } else if (sscanf(line, "%127[^@ \n] %lf", name, &value) == 2 && of_all && !strcmp(name, key)) {
            found = value;
        }
    }
    fclose(file);
    return found;
}

static u64 now_us(void) {
    struct timeval now;
    gettimeofday(&now, NULL);
    return (u64)now.tv_sec * 1000000 + now.tv_usec;
}

static int called(const char *function, int gpu) {
    usleep((useconds_t)(1e6 * setting(gpu, "call_s", 0)));
    return (int)setting(gpu, function, SUCCESS);
}

/* What every function of a device does first; a slice of MIG answers few of them. */
static int asked(const char *function, const Device *device, int of_slices) {
    int code = called(function, device ? device->gpu : -1);
    if (!initialized) return UNINITIALIZED;
    if (!device) return INVALID_ARGUMENT;
    if (setting(device->gpu, "every_function", SUCCESS)) return (int)setting(device->gpu, "every_function", SUCCESS);
    return device->slice && !of_slices ? NOT_SUPPORTED : code;
}

#define ASK(device) do { int code = asked(__func__, device, 0); if (code) return code; } while (0)
#define ASK_SLICE_TOO(device) do { int code = asked(__func__, device, 1); if (code) return code; } while (0)
#define NUMBER(function, type, key, otherwise) \
    int function(const Device *device, type *value) { \
        ASK(device); \
        *value = (type)setting(device->gpu, key, otherwise); \
        return SUCCESS; \
    }

int nvmlInitWithFlags(unsigned flags) {
    int code = called(__func__, -1);
    (void)flags;
    initialized = !code;
    return code;
}

int nvmlInit_v2(void) { return nvmlInitWithFlags(0); }
int nvmlShutdown(void) { return initialized ? SUCCESS : UNINITIALIZED; }

int nvmlSystemGetDriverVersion(char *version, unsigned size) {
    int code = called(__func__, -1);
    snprintf(version, size, "%.2f", setting(-1, "driver", 580.65));
    return initialized ? code : UNINITIALIZED;
}

int nvmlDeviceGetCount_v2(unsigned *count) {
    int code = called(__func__, -1);
    *count = (unsigned)setting(-1, "gpus", 1);
    return initialized ? code : UNINITIALIZED;
}

static Device *device_of(int gpu, int slice) {
    if (gpu < 0 || gpu >= (int)setting(-1, "gpus", 1) || slice > (int)setting(gpu, "mig_slices", 0)) return NULL;
    devices[gpu][slice] = (Device){gpu, slice};
    return &devices[gpu][slice];
}

int nvmlDeviceGetHandleByIndex_v2(unsigned index, Device **device) {
    int code = called(__func__, (int)index);
    if (!initialized) return UNINITIALIZED;
    *device = device_of((int)index, 0);
    return *device ? code : INVALID_ARGUMENT;
}

int nvmlDeviceGetHandleByUUID(const char *uuid, Device **device) {
    int gpu = -1, slice = 0, length = 0, code = called(__func__, -1);
    if (!initialized) return UNINITIALIZED;
    if (sscanf(uuid, "GPU-%d%n", &gpu, &length) != 1) sscanf(uuid, "MIG-%d-%d%n", &gpu, &slice, &length);
    *device = length == (int)strlen(uuid) ? device_of(gpu, slice) : NULL;
    return code ? code : *device ? SUCCESS : NOT_FOUND;
}

int nvmlDeviceGetUUID(const Device *device, char *uuid, unsigned size) {
    ASK_SLICE_TOO(device);
    if (device->slice) snprintf(uuid, size, "MIG-%d-%d", device->gpu, device->slice);
    else snprintf(uuid, size, "GPU-%d", device->gpu);
    return SUCCESS;
}

int nvmlDeviceGetDeviceHandleFromMigDeviceHandle(const Device *slice, Device **device) {
    ASK_SLICE_TOO(slice);
    *device = device_of(slice->gpu, 0);
    return slice->slice ? SUCCESS : INVALID_ARGUMENT;
}

int nvmlDeviceGetMigMode(const Device *device, unsigned *current, unsigned *pending) {
    ASK(device);
    *current = *pending = setting(device->gpu, "mig_slices", 0) > 0;
    return SUCCESS;
}

/* Version 1 counts what the driver reserves as used. */
int nvmlDeviceGetMemoryInfo(const Device *device, Memory *memory) {
    ASK_SLICE_TOO(device);
    memory->total = (u64)setting(device->gpu, "memory_total", 80e9);
    memory->used = (u64)(setting(device->gpu, "memory_used", 1e9) + setting(device->gpu, "memory_reserved", 9e8));
    if (setting(device->gpu, "memory_unknown", 0)) memory->used = (u64)-1; /* NVML_VALUE_NOT_AVAILABLE */
    memory->free = memory->total - memory->used;
    return SUCCESS;
}

/* Percent of the time in which a kernel ran, around a moment. */
static unsigned busy_percent(int gpu, double at_us) {
    int busy = at_us >= setting(gpu, "busy_from_us", 0) && at_us <= setting(gpu, "busy_until_us", 1e18);
    return busy ? (unsigned)setting(gpu, "busy_percent", 50) : 0;
}

/* Of the last sample period, which ended some time ago. */
int nvmlDeviceGetUtilizationRates(const Device *device, Utilization *rates) {
    ASK(device);
    if (setting(device->gpu, "mig_slices", 0)) return NOT_SUPPORTED;
    rates->gpu = busy_percent(device->gpu, (double)now_us() - 1e6 * setting(device->gpu, "lag_s", 0));
    if (setting(device->gpu, "utilization_unknown", 0)) rates->gpu = (unsigned)-1;
    rates->memory = rates->gpu / 2;
    return SUCCESS;
}

/* The driver keeps the last samples, one every sixth of a second, with the time of the CPU's clock at which each ends. */
int nvmlDeviceGetSamples(const Device *device, int type, u64 last_us, int *value_type, unsigned *count, Sample *samples) {
    u64 period_us = (u64)(1e6 * setting(device ? device->gpu : -1, "sample_s", 1.0 / 6)), at_us;
    unsigned found = 0;
    ASK(device);
    if (type != 1 || setting(device->gpu, "mig_slices", 0)) return NOT_SUPPORTED; /* utilization alone */
    *value_type = 1; /* unsigned int */
    if (!samples) return *count = SAMPLES, SUCCESS;
    at_us = now_us() / period_us * period_us - (SAMPLES - 1) * period_us;
    for (int place = 0; place < SAMPLES && found < *count; place++, at_us += period_us)
        if (at_us > last_us)
            samples[found++] = (Sample){.time_us = at_us, .value.as_unsigned =
                                        busy_percent(device->gpu, (double)at_us - (double)period_us / 2)};
    *count = found;
    return found ? SUCCESS : NOT_FOUND;
}

NUMBER(nvmlDeviceGetPowerUsage, unsigned, "power_mw", 300e3)
NUMBER(nvmlDeviceGetCurrentClocksThrottleReasons, u64, "throttle", 0)
NUMBER(nvmlDeviceGetCurrPcieLinkGeneration, unsigned, "pcie_generation", 5)
NUMBER(nvmlDeviceGetMaxPcieLinkGeneration, unsigned, "pcie_max_generation", 5)
NUMBER(nvmlDeviceGetCurrPcieLinkWidth, unsigned, "pcie_width", 16)
NUMBER(nvmlDeviceGetMaxPcieLinkWidth, unsigned, "pcie_max_width", 16)

/* Millijoules since the driver was loaded, which this takes to be some time in this month, and `more_energy_mj`. */
int nvmlDeviceGetTotalEnergyConsumption(const Device *device, u64 *energy) {
    ASK(device);
    *energy = (u64)(setting(device->gpu, "power_mw", 300e3) * (double)(now_us() % 2592000000000ULL) / 1e6);
    *energy += (u64)setting(device->gpu, "more_energy_mj", 0);
    return SUCCESS;
}

int nvmlDeviceGetClockInfo(const Device *device, int type, unsigned *clock) {
    ASK(device);
    *clock = (unsigned)setting(device->gpu, type == 2 ? "memory_mhz" : "sm_mhz", type == 2 ? 2619 : 1500);
    return SUCCESS;
}

int nvmlDeviceGetMaxClockInfo(const Device *device, int type, unsigned *clock) {
    ASK(device);
    *clock = (unsigned)setting(device->gpu, type == 2 ? "memory_max_mhz" : "sm_max_mhz", type == 2 ? 2619 : 1980);
    return SUCCESS;
}

/* A bit for each CPU near the GPU, from `near_cpus_from` to `near_cpus_to`. */
int nvmlDeviceGetCpuAffinity(const Device *device, unsigned size, u64 *set) {
    ASK(device);
    memset(set, 0, size * sizeof *set);
    for (int cpu = (int)setting(device->gpu, "near_cpus_from", 0); cpu <= setting(device->gpu, "near_cpus_to", 63); cpu++)
        if (cpu < (int)size * 64) set[cpu / 64] |= 1ULL << cpu % 64;
    return SUCCESS;
}

#ifndef OLD_DRIVER
int nvmlDeviceGetMemoryInfo_v2(const Device *device, Memory2 *memory) {
    ASK_SLICE_TOO(device);
    if (memory->version != (sizeof *memory | 2 << 24)) return ARGUMENT_VERSION_MISMATCH;
    memory->total = (u64)setting(device->gpu, "memory_total", 80e9);
    memory->reserved = (u64)setting(device->gpu, "memory_reserved", 9e8);
    memory->used = (u64)setting(device->gpu, "memory_used", 1e9);
    if (setting(device->gpu, "memory_unknown", 0)) memory->used = (u64)-1;
    memory->free = memory->total - memory->reserved - memory->used;
    return SUCCESS;
}

NUMBER(nvmlDeviceGetCurrentClocksEventReasons, u64, "throttle", 0)
NUMBER(nvmlDeviceGetGpuMaxPcieLinkGeneration, unsigned, "pcie_max_generation", 5)

/* Only where the GPU itself is a NUMA node, as on Grace Hopper. */
int nvmlDeviceGetNumaNodeId(const Device *device, unsigned *node) {
    ASK(device);
    *node = 0;
    return NOT_SUPPORTED;
}

/* A bit for each NUMA node near the GPU. */
int nvmlDeviceGetMemoryAffinity(const Device *device, unsigned size, u64 *set, unsigned scope) {
    ASK(device);
    (void)scope;
    memset(set, 0, size * sizeof *set);
    set[0] = 1ULL << (int)setting(device->gpu, "numa_node", 0);
    return SUCCESS;
}

int nvmlDeviceGetComputeRunningProcesses_v3(const Device *device, unsigned *count, Process *processes) {
    unsigned room = *count;
    ASK_SLICE_TOO(device);
    *count = setting(device->gpu, "process_pid", 0) > 0;
    if (room < *count) return INSUFFICIENT_SIZE;
    if (*count) processes[0] = (Process){(unsigned)setting(device->gpu, "process_pid", 0), 1 << 30, ~0u, ~0u};
    return SUCCESS;
}

/* Performance metrics. `gpm` is 1 where a GPU has them, 2 where the driver says that it has not. */
int nvmlGpmQueryDeviceSupport(const Device *device, GpmSupport *support) {
    int has = (int)setting(device ? device->gpu : -1, "gpm", 1);
    ASK(device);
    if (support->version != 1) return ARGUMENT_VERSION_MISMATCH;
    support->supported = has == 1;
    return has ? SUCCESS : NOT_SUPPORTED;
}

int nvmlDeviceGetGpuInstanceId(const Device *device, unsigned *id) {
    ASK_SLICE_TOO(device);
    *id = (unsigned)device->slice;
    return device->slice ? SUCCESS : INVALID_ARGUMENT;
}

int nvmlGpmSampleAlloc(GpmSample **sample) {
    *sample = calloc(1, sizeof **sample);
    return SUCCESS;
}

int nvmlGpmSampleFree(GpmSample *sample) {
    free(sample);
    return SUCCESS;
}

int nvmlGpmSampleGet(const Device *device, GpmSample *sample) {
    ASK(device);
    *sample = (GpmSample){*device, now_us()};
    return SUCCESS;
}

int nvmlGpmMigSampleGet(const Device *device, unsigned instance, GpmSample *sample) {
    ASK(device);
    if (instance < 1 || instance > setting(device->gpu, "mig_slices", 0)) return INVALID_ARGUMENT;
    *sample = (GpmSample){{device->gpu, (int)instance}, now_us()};
    return SUCCESS;
}

/* The value of metric 2, SM activity, is the setting `gpm_2`, and so on; without one, it alone is known. Of an instance of MIG, as much more as its number. */
int nvmlGpmMetricsGet(GpmMetrics *asked) {
    if (asked->version != 1) return ARGUMENT_VERSION_MISMATCH;
    if (!asked->before->time_us || asked->now->time_us <= asked->before->time_us) return INVALID_ARGUMENT;
    for (unsigned place = 0; place < asked->count; place++) {
        GpmMetric *metric = &asked->metrics[place];
        char key[32];
        snprintf(key, sizeof key, "gpm_%u", metric->id);
        metric->value = setting(asked->now->device.gpu, key, metric->id == 2 ? 60 : -1);
        metric->code = metric->value < 0 ? NOT_SUPPORTED : SUCCESS;
        metric->value += asked->now->device.slice;
    }
    return SUCCESS;
}
#endif
