#pragma once

/* A training step without the trainer: a file that `rondo export-step run.toml out.step` wrote,
 * run from C or anything that calls C. No config, no callbacks, no command line.
 *
 * No exception crosses this interface. Functions that can fail say what they return then; a text of
 * what went wrong is at `rondo_step_error`, a value of the calling thread. A step is used by one
 * thread at a time. Several threads may open and run different steps at once. LibTorch has one
 * default generator of random numbers: runs of steps that draw some (dropout), and openings, wait
 * for each other, and nothing else in the process may draw from it meanwhile.
 *
 * A file holds no code. Opening it calls the operators that it names, on numbers of rondo's own, to
 * choose kernels; running it calls them on yours. Open files of people that you trust.
 */

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct rondo_step rondo_step;

/* The types of elements, numbered as in LibTorch. */
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

/* A tensor in row-major order: sizes[0] is the first dimension, and what differs only in the last
 * one lies side by side. `dims` counts `sizes`; `bytes` is the size of all elements. Texts and
 * sizes live as long as the step. */
typedef struct rondo_tensor {
  const char* name;
  rondo_dtype dtype;
  int64_t dims;
  const int64_t* sizes;
  size_t bytes;
} rondo_tensor;

/* Reads a file, checks every byte, and plans the step. Sets LibTorch's thread count to that of the
 * export. Null when it fails. */
rondo_step* rondo_step_open(const char* path);

/* Frees a step; null is harmless. */
void rondo_step_close(rondo_step* step);

/* What went wrong last on this thread; "" when nothing did. Until the next call of this thread. */
const char* rondo_step_error(void);

/* How the step was made: versions, numeric environment, config. Lives as long as the step. "" of a
 * null step. */
const char* rondo_step_manifest(rondo_step* step);

/* How many tensors a batch has; 0 of a null step. */
int64_t rondo_step_inputs(rondo_step* step);

/* Describes the input of this number, from 0. Returns 1, or 0 when there is no such input. */
int rondo_step_input(rondo_step* step, int64_t index, rondo_tensor* tensor);

/* Describes an output ("loss") or a tensor of the state ("model.0.weight", "optimizer.group/0/lr").
 * Returns 1, or 0 when there is no such name. */
int rondo_step_find(rondo_step* step, const char* name, rondo_tensor* tensor);

/* Where an input's elements lie in the runs to come. They are read when the step runs, and must
 * stay there. `bytes` is the size of the whole input. Returns 1, or 0 when there is no such input
 * or it has another size. */
int rondo_step_bind(rondo_step* step, const char* name, const void* data, size_t bytes);

/* What `rondo_step_run` returns when the step, while it was recorded, read a value on the host (a
 * flag, or a size that follows from data) that is another one for this batch. `rondo_step_error`
 * names it. Nothing was changed: the step can go on with another batch. */
#define RONDO_STEP_GUARD (-1)

/* Trains on one batch. Returns 1, or RONDO_STEP_GUARD, or 0 when an input was never bound or an
 * operator failed; after the latter the state may be half updated: close the step. Only 1 means
 * that it has trained. */
int rondo_step_run(rondo_step* step);

/* Copies an output of the newest run, or a tensor of the state. Outputs are zero before the first
 * run. Returns 1, or 0 when there is no such name or `bytes` is not its whole size. */
int rondo_step_read(rondo_step* step, const char* name, void* data, size_t bytes);

/* Writes the step with the state as it is now: open that file to go on. A crash leaves the old file
 * or the new one. Returns 1, or 0 when it cannot be written. */
int rondo_step_save(rondo_step* step, const char* path);

#ifdef __cplusplus
}
#endif
