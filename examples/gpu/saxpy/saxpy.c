/*
 * Saxpy computes y = a·x + y on the first GPU, and checks every result against the CPU's.
 * usage: saxpy [hold]     with hold it keeps the GPU and computes each second until SIGTERM
 *
 * It needs no CUDA toolkit: it opens the driver's library at run time, and the driver compiles the
 * kernel, which is PTX, for the GPU that is there.
 */
#include <dlfcn.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define COUNT (1u << 24)
#define BLOCK 256u

static const char kernel[] =
	".version 6.0\n"
	".target sm_50\n"
	".address_size 64\n"
	".visible .entry saxpy(.param .u32 count, .param .f32 a, .param .u64 x, .param .u64 y)\n"
	"{\n"
	"  .reg .pred %p;\n"
	"  .reg .b32 %r<6>;\n"
	"  .reg .f32 %f<4>;\n"
	"  .reg .b64 %d<6>;\n"
	"  mov.u32 %r1, %ctaid.x;\n"
	"  mov.u32 %r2, %ntid.x;\n"
	"  mov.u32 %r3, %tid.x;\n"
	"  mad.lo.u32 %r4, %r1, %r2, %r3;\n"
	"  ld.param.u32 %r5, [count];\n"
	"  setp.ge.u32 %p, %r4, %r5;\n"
	"  @%p bra done;\n"
	"  ld.param.f32 %f1, [a];\n"
	"  ld.param.u64 %d1, [x];\n"
	"  ld.param.u64 %d2, [y];\n"
	"  cvta.to.global.u64 %d1, %d1;\n"
	"  cvta.to.global.u64 %d2, %d2;\n"
	"  mul.wide.u32 %d3, %r4, 4;\n"
	"  add.u64 %d4, %d1, %d3;\n"
	"  add.u64 %d5, %d2, %d3;\n"
	"  ld.global.f32 %f2, [%d4];\n"
	"  ld.global.f32 %f3, [%d5];\n"
	"  fma.rn.f32 %f3, %f1, %f2, %f3;\n"
	"  st.global.f32 [%d5], %f3;\n"
	"done:\n"
	"  ret;\n"
	"}\n";

/* The types of the driver's API: all handles are pointers, and all results are 0 for success. */
typedef void *handle;
typedef unsigned long long address;

static struct {
	int (*error_string)(int, const char **);
	int (*init)(unsigned);
	int (*device_count)(int *);
	int (*device)(int *, int);
	int (*device_name)(char *, int, int);
	int (*device_memory)(size_t *, int);
	int (*retain_context)(handle *, int);
	int (*set_context)(handle);
	int (*load_module)(handle *, const void *);
	int (*get_function)(handle *, handle, const char *);
	int (*allocate)(address *, size_t);
	int (*to_device)(address, const void *, size_t);
	int (*to_host)(void *, address, size_t);
	int (*launch)(handle, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, handle, void **, void **);
	int (*synchronize)(void);
} cuda;

static volatile sig_atomic_t stopped;

static void stop(int number)
{
	(void)number;
	stopped = 1;
}

static void find(handle library, const char *name, void *into)
{
	handle symbol = dlsym(library, name);
	if (!symbol) {
		fprintf(stderr, "saxpy: find %s: %s\n", name, dlerror());
		exit(1);
	}
	memcpy(into, &symbol, sizeof symbol);
}

static void open_driver(void)
{
	handle library = dlopen("libcuda.so.1", RTLD_NOW);
	if (!library) {
		fprintf(stderr, "saxpy: open the driver: %s; does the container request a GPU?\n", dlerror());
		exit(1);
	}
	find(library, "cuGetErrorString", &cuda.error_string);
	find(library, "cuInit", &cuda.init);
	find(library, "cuDeviceGetCount", &cuda.device_count);
	find(library, "cuDeviceGet", &cuda.device);
	find(library, "cuDeviceGetName", &cuda.device_name);
	find(library, "cuDeviceTotalMem_v2", &cuda.device_memory);
	find(library, "cuDevicePrimaryCtxRetain", &cuda.retain_context);
	find(library, "cuCtxSetCurrent", &cuda.set_context);
	find(library, "cuModuleLoadData", &cuda.load_module);
	find(library, "cuModuleGetFunction", &cuda.get_function);
	find(library, "cuMemAlloc_v2", &cuda.allocate);
	find(library, "cuMemcpyHtoD_v2", &cuda.to_device);
	find(library, "cuMemcpyDtoH_v2", &cuda.to_host);
	find(library, "cuLaunchKernel", &cuda.launch);
	find(library, "cuCtxSynchronize", &cuda.synchronize);
}

static void check(int result, const char *what)
{
	const char *reason = NULL;
	if (!result)
		return;
	cuda.error_string(result, &reason);
	fprintf(stderr, "saxpy: %s: error %d: %s\n", what, result, reason ? reason : "unknown");
	exit(1);
}

/* All values are integers below 2^24, so the results of GPU and CPU are equal to the last bit. */
static const float a = 3;
static float x_at(unsigned i) { return (float)(i % 1000); }
static float y_at(unsigned i) { return (float)(i % 77); }

struct job {
	handle function;
	address x, y;
	float *x_host, *y_host;
};

static void prepare(struct job *j)
{
	const size_t size = COUNT * sizeof(float);
	handle context, module;
	char name[256];
	int devices, device;
	size_t memory;

	check(cuda.init(0), "start the driver");
	check(cuda.device_count(&devices), "count the GPUs");
	check(cuda.device(&device, 0), "find the first GPU");
	check(cuda.device_name(name, sizeof name, device), "read the GPU's name");
	check(cuda.device_memory(&memory, device), "read the GPU's memory");
	printf("saxpy: %d GPU, the first is %s with %zu MiB\n", devices, name, memory >> 20);
	check(cuda.retain_context(&context, device), "make a context");
	check(cuda.set_context(context), "use the context");
	check(cuda.load_module(&module, kernel), "compile the kernel");
	check(cuda.get_function(&j->function, module, "saxpy"), "find the kernel");
	check(cuda.allocate(&j->x, size), "allocate x");
	check(cuda.allocate(&j->y, size), "allocate y");
	j->x_host = malloc(size);
	j->y_host = malloc(size);
	if (!j->x_host || !j->y_host) {
		perror("saxpy: allocate memory");
		exit(1);
	}
}

static void compute(struct job *j)
{
	const size_t size = COUNT * sizeof(float);
	unsigned count = COUNT;
	float factor = a;
	void *arguments[] = {&count, &factor, &j->x, &j->y};

	for (unsigned i = 0; i < COUNT; i++) {
		j->x_host[i] = x_at(i);
		j->y_host[i] = y_at(i);
	}
	check(cuda.to_device(j->x, j->x_host, size), "copy x to the GPU");
	check(cuda.to_device(j->y, j->y_host, size), "copy y to the GPU");
	check(cuda.launch(j->function, COUNT / BLOCK, 1, 1, BLOCK, 1, 1, 0, NULL, arguments, NULL), "start the kernel");
	check(cuda.synchronize(), "run the kernel");
	check(cuda.to_host(j->y_host, j->y, size), "copy y from the GPU");
	for (unsigned i = 0; i < COUNT; i++) {
		float want = a * x_at(i) + y_at(i);
		if (j->y_host[i] != want) {
			fprintf(stderr, "saxpy: y[%u] is %g, not %g\n", i, j->y_host[i], want);
			exit(1);
		}
	}
}

int main(int argc, char **argv)
{
	struct job j;
	unsigned long runs = 0;
	int hold = argc == 2 && !strcmp(argv[1], "hold");

	if (argc > 2 || (argc == 2 && !hold)) {
		fprintf(stderr, "usage: saxpy [hold]\n");
		return 2;
	}
	setvbuf(stdout, NULL, _IOLBF, 0);
	signal(SIGTERM, stop);
	open_driver();
	prepare(&j);
	do {
		compute(&j);
		if (!runs++)
			printf("saxpy: %u results are right\n", COUNT);
		if (hold && !stopped)
			nanosleep(&(struct timespec){1, 0}, NULL);
	} while (hold && !stopped);
	printf("saxpy: done after %lu runs\n", runs);
	return 0;
}
