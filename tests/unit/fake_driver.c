/* Stands in for NVIDIA's driver: the same names and structs as cuda.h 13.0, and it looks at what it is given.
   A test reads what was asked for from the accessors at the end. */
#include <stdint.h>
#include <string.h>

typedef struct { uint32_t id; char pad[4]; union { char room[64]; struct { uint32_t x, y, z; } cluster; } value; } Attribute;
typedef struct {
  uint32_t grid_x, grid_y, grid_z, block_x, block_y, block_z, shared_bytes;
  void *stream;
  Attribute *attributes;
  uint32_t attribute_count;
} Config;
typedef struct { uint64_t words[16]; } Map;

static char kinds[32];      /* what the kernel takes: m, p or i for each parameter */
static uint64_t given[32];  /* numbers and addresses; of a map the address of the matrix */
static Map maps[8];
static int map_count, device_set, module_loads, shared_allowed;
static char loaded_kernel[64];
static Config launched;
static Attribute launched_attribute;
static int fail_with, version = 13000;

void fake_expect(const char *what) { strcpy(kinds, what); }
void fake_fail(int status) { fail_with = status; }
void fake_version(int is) { version = is; }
uint64_t fake_given(int i) { return given[i]; }
uint64_t fake_map_word(int map, int word) { return maps[map].words[word]; }
int fake_loads(void) { return module_loads; }
int fake_shared_allowed(void) { return shared_allowed; }
int fake_context(void) { return device_set; }
const char *fake_kernel(void) { return loaded_kernel; }
uint64_t fake_launched(int i) {
  uint64_t found[] = {launched.grid_x, launched.grid_y, launched.grid_z, launched.block_x, launched.block_y,
                      launched.block_z, launched.shared_bytes, (uint64_t)launched.stream, launched.attribute_count,
                      launched_attribute.id, launched_attribute.value.cluster.x, launched_attribute.value.cluster.y,
                      launched_attribute.value.cluster.z};
  return found[i];
}

int cuDriverGetVersion(int *is) { return *is = version, 0; }
int cuCtxGetCurrent(void **context) { return *context = device_set ? (void *)0xC0 : 0, 0; }
int cuDeviceGet(int *device, int ordinal) { return *device = 100 + ordinal, 0; }
int cuDevicePrimaryCtxRetain(void **context, int device) { return *context = (void *)(uintptr_t)device, 0; }
int cuCtxSetCurrent(void *context) { return device_set = (int)(uintptr_t)context, 0; }
int cuModuleLoadData(void **module, const void *image) {
  if (memcmp(image, "\177ELF", 4)) return 200;
  return ++module_loads, *module = (void *)0x1000, 0;
}
int cuModuleGetFunction(void **function, void *module, const char *name) {
  if (module != (void *)0x1000) return 400;
  return strcpy(loaded_kernel, name), *function = (void *)0x123456789A, 0;
}
int cuFuncSetAttribute(void *function, int attribute, int value) {
  if (function != (void *)0x123456789A || attribute != 8) return 400;
  return shared_allowed = value, 0;
}
int cuTensorMapEncodeTiled(Map *map, int dtype, uint32_t rank, void *address, const uint64_t *dims,
                           const uint64_t *strides, const uint32_t *box, const uint32_t *element_strides,
                           int interleave, int swizzle, int promotion, int outside) {
  if (fail_with) return fail_with;
  if ((uintptr_t)map % 128 || interleave || outside) return 1;
  memset(map, 0, sizeof *map);
  uint64_t *words = map->words;
  words[0] = (uint64_t)address, words[1] = dtype, words[2] = rank, words[3] = swizzle, words[4] = promotion;
  for (uint32_t i = 0; i < rank; ++i) {
    if (element_strides[i] != 1) return 1;
    words[5 + i] = dims[i], words[8 + i] = box[i];
    if (i + 1 < rank) words[11 + i] = strides[i];
  }
  return 0;
}
int cuLaunchKernelEx(const Config *config, void *function, void **parameters, void **extra) {
  if (fail_with) return fail_with;
  if (function != (void *)0x123456789A || extra || (int)config->shared_bytes > shared_allowed) return 1;
  launched = *config;
  memset(&launched_attribute, 0, sizeof launched_attribute);
  if (config->attribute_count) launched_attribute = config->attributes[0];
  map_count = 0;
  for (int i = 0; kinds[i]; ++i) {
    if (kinds[i] == 'm') maps[map_count] = *(Map *)parameters[i], given[i] = maps[map_count++].words[0];
    if (kinds[i] == 'p') given[i] = *(uint64_t *)parameters[i];
    if (kinds[i] == 'i') given[i] = *(int32_t *)parameters[i];
  }
  return 0;
}
int cuGetErrorName(int status, const char **name) { return *name = status == 1 ? "CUDA_ERROR_INVALID_VALUE" : 0, status != 1; }
int cuGetErrorString(int status, const char **text) { return *text = status == 1 ? "invalid argument" : 0, status != 1; }
