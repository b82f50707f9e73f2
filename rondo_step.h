#pragma once

/* A training step without the trainer: a file that `rondo export-step run.toml out.step` wrote,
 * run from C or anything that calls C. No config, no callbacks, no command line.
 *
 * No exception crosses this interface. Each function that can fail documents what it returns then;
 * `rondo_step_error` gives the message, one per thread. Only one thread at a time may use a step,
 * but several threads can open and run different steps at once. LibTorch has one default random
 * generator: opening a step and running one that draws random numbers (dropout) wait for each
 * other. Nothing else in the process may draw from that generator meanwhile.
 *
 * A file holds no code. Opening it calls the operators that it names on rondo's own test data, to
 * choose kernels; running it calls them on your data. Only open files from people you trust.
 */

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct rondo_step rondo_step;

/* Element types, numbered as in LibTorch. */
typedef enum rondo_dtype {
  RONDO_UINT8 = 0,
  RONDO_INT8 = 1,
  RONDO_INT16 = 2,
  RONDO_INT32 = 3,
  RONDO_INT64 = 4,
  RONDO_FLOAT16 = 5,
  RONDO_FLOAT32 = 6,
  RONDO_FLOAT64 = 7,
  RONDO_BOOL = 11,
  RONDO_BFLOAT16 = 15
} rondo_dtype;

/* A tensor in row-major order: sizes[0] is the first dimension, and the last one is contiguous in
 * memory. `dims` is the length of `sizes`; `bytes` is the size of all elements. `name` and `sizes`
 * live as long as the step. */
typedef struct rondo_tensor {
  const char* name;
  rondo_dtype dtype;
  int64_t dims;
  const int64_t* sizes;
  size_t bytes;
} rondo_tensor;

/* Reads a file, checks every byte, and plans the step. Sets LibTorch's thread count to that of the
 * export. Returns null on failure. */
rondo_step* rondo_step_open(const char* path);

/* Frees a step; null is harmless. */
void rondo_step_close(rondo_step* step);

/* The last error on this thread; "" if there is none. Valid until the thread's next call. */
const char* rondo_step_error(void);

/* How the step was made: versions, numeric environment, config. Lives as long as the step. "" for a
 * null step. */
const char* rondo_step_manifest(rondo_step* step);

/* The number of tensors in a batch; 0 for a null step. */
int64_t rondo_step_inputs(rondo_step* step);

/* Describes input `index`, counted from 0. Returns 1, or 0 when there is no such input. */
int rondo_step_input(rondo_step* step, int64_t index, rondo_tensor* tensor);

/* Describes an output ("loss") or a tensor of the state ("model.0.weight", "optimizer.group/0/lr").
 * Returns 1, or 0 when there is no such name. */
int rondo_step_find(rondo_step* step, const char* name, rondo_tensor* tensor);

/* Sets where later runs read an input's elements. Each run reads them there, so the memory must
 * stay valid. `bytes` is the size of the whole input. Returns 1, or 0 when there is no such input
 * or its size differs. */
int rondo_step_bind(rondo_step* step, const char* name, const void* data, size_t bytes);

/* `rondo_step_run` returns this when the recording read a value on the host (a flag, or a size that
 * depends on the data) and this batch gives another value. `rondo_step_error` names it. Nothing has
 * changed: the step can run with another batch. */
#define RONDO_STEP_GUARD (-1)

/* Trains on one batch. Returns 1, or RONDO_STEP_GUARD, or 0 when an input was never bound or an
 * operator failed. After a failed operator the state may be half updated: close the step. Only 1
 * means that it has trained. */
int rondo_step_run(rondo_step* step);

/* Copies an output of the latest run, or a tensor of the state. Outputs are zero before the first
 * run. Returns 1, or 0 when there is no such name or `bytes` is not its size. */
int rondo_step_read(rondo_step* step, const char* name, void* data, size_t bytes);

/* Writes the step with its current state: open that file to continue. A crash leaves the old file
 * or the new one. Returns 1, or 0 when it cannot be written. */
int rondo_step_save(rondo_step* step, const char* path);

#ifdef __cplusplus
}
#endif
