#pragma once

/* Training inside a program that makes its own samples, such as a simulation: from C, or anything
 * that calls C (rondo.f90 for Fortran). A run file defines the run; its training data is
 *
 *     train_dataloader = { dataset = "SampleRing", capacity = 10000, min_samples = 100,
 *                          batch_size = 32 }
 *
 * and the program pushes samples into that ring. No exception crosses this interface. Functions
 * return a code; `rondo_last_error` gives the message. Any thread may call `rondo_push`, even
 * during training. Only one thread at a time may call the other functions. */

#include "rondo_step.h" /* rondo_dtype */

#ifdef __cplusplus
extern "C" {
#endif

typedef struct rondo_trainer rondo_trainer;

/* Return codes: 0 or more on success. */
enum {
  RONDO_OK = 0,
  RONDO_DONE = 1,        /* the run is complete */
  RONDO_OVERWROTE = 2,   /* the sample replaced the oldest one */
  RONDO_DROPPED = 3,     /* the ring was full: the sample was dropped */
  RONDO_ERROR = -1,      /* any other error */
  RONDO_MISMATCH = -2,   /* the sample's layout differs from earlier ones; nothing changed */
  RONDO_BAD_CONFIG = -3, /* an error in the run file */
  RONDO_BAD_USE = -4,    /* a wrong argument, or a call at the wrong time */
  RONDO_TOO_SMALL = -5   /* the output does not fit the buffer */
};

/* Numbers in row-major order: sizes[0] is the first dimension. `sizes` may be null when `dims` is
 * 0. */
typedef struct rondo_array {
  const char* name;
  rondo_dtype dtype;
  int64_t dims;
  const int64_t* sizes;
  const void* data;
} rondo_array;

/* Builds the run of a file, which must have one phase with a section [trainer.fit]. The first call
 * that trains starts the fit from the newest checkpoint, as `rondo fit` does. */
int rondo_open(const char* toml, rondo_trainer** trainer);

/* Copies one sample into the ring: RONDO_OK, RONDO_OVERWROTE, RONDO_DROPPED, RONDO_MISMATCH or an
 * error. A sample has no batch dimension. */
int rondo_push(rondo_trainer* trainer, const rondo_array* tensors, int64_t count);

/* Trains for `updates` updates, waiting while samples are missing: RONDO_OK, RONDO_DONE or an
 * error. After an error the fit is over. */
int rondo_train_steps(rondo_trainer* trainer, int64_t updates);

/* Trains for `seconds` seconds: RONDO_OK, RONDO_DONE or an error. It can pause in the middle of a
 * step, which the next call resumes. */
int rondo_train_for(rondo_trainer* trainer, double seconds);

/* Updates since the beginning of the run, earlier processes included. -1 for a null trainer. */
int64_t rondo_updates(const rondo_trainer* trainer);

/* Runs the current model in eval mode on a batch: each input has the batch as its first dimension.
 * Copies the output named `output` to `data`, which has room for `bytes` bytes. `needed`, unless
 * null, receives the size of the output in bytes, with RONDO_TOO_SMALL too. */
int rondo_infer(rondo_trainer* trainer,
                const rondo_array* inputs,
                int64_t count,
                const char* output,
                void* data,
                size_t bytes,
                size_t* needed);

/* Saves a checkpoint into the run's directory; finishes the step in progress first. */
int rondo_save(rondo_trainer* trainer);

/* The last error on this thread; "" if there is none. Valid until the thread's next call. */
const char* rondo_last_error(void);

/* Ends the run and frees it without saving. No push may be running or follow. Null is harmless. */
void rondo_close(rondo_trainer* trainer);

#ifdef __cplusplus
}
#endif
