#pragma once

/* Training inside a program that makes its own samples, such as a simulation: from C, or anything
 * that calls C (rondo.f90 for Fortran). A run file says what is trained; its training data is
 *
 *     train_dataloader = { dataset = "SampleRing", capacity = 10000, min_samples = 100,
 *                          batch_size = 32 }
 *
 * and the program pushes samples into that ring. No exception crosses this interface. Functions
 * return a code; what went wrong is at `rondo_last_error`. `rondo_push` may be called by any
 * threads, also while the trainer trains. Of the other functions one thread at a time calls one. */

#include "rondo_step.h" /* rondo_dtype */

#ifdef __cplusplus
extern "C" {
#endif

typedef struct rondo_trainer rondo_trainer;

/* What functions return: 0 or more when they did what was asked. */
enum {
  RONDO_OK = 0,
  RONDO_DONE = 1,        /* the run has reached its total */
  RONDO_OVERWROTE = 2,   /* the sample replaced the oldest one */
  RONDO_DROPPED = 3,     /* the ring was full: the sample was left out */
  RONDO_ERROR = -1,      /* of any other kind */
  RONDO_MISMATCH = -2,   /* the sample differs from those before it; nothing changed */
  RONDO_BAD_CONFIG = -3, /* the run file */
  RONDO_BAD_USE = -4,    /* an argument, or a call at the wrong time */
  RONDO_TOO_SMALL = -5   /* the memory for an output */
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

/* Builds the run of a file, of one phase with a section [trainer.fit]. The fit begins with the
 * first call that trains: from the newest checkpoint, as `rondo fit` does. */
int rondo_open(const char* toml, rondo_trainer** trainer);

/* Copies one sample into the ring: RONDO_OK, RONDO_OVERWROTE, RONDO_DROPPED, RONDO_MISMATCH or an
 * error. A sample is without the dimension of the batch. */
int rondo_push(rondo_trainer* trainer, const rondo_array* tensors, int64_t count);

/* Trains so many updates, waiting for samples where they are missing: RONDO_OK, RONDO_DONE or an
 * error. After an error the fit is over. */
int rondo_train_steps(rondo_trainer* trainer, int64_t updates);

/* Trains for so many seconds. The last step may be in progress then, and the next call goes on with
 * it. RONDO_OK, RONDO_DONE or an error. */
int rondo_train_for(rondo_trainer* trainer, double seconds);

/* Updates since the beginning of the run, earlier processes included. -1 of a null trainer. */
int64_t rondo_updates(const rondo_trainer* trainer);

/* Runs the model as it is, in eval mode, on a batch: each input has the batch as its first
 * dimension. Copies the output of this name to `data`, which has room for `bytes`. `needed`, where
 * it is not null, gets the bytes of the output, also with RONDO_TOO_SMALL. */
int rondo_infer(rondo_trainer* trainer,
                const rondo_array* inputs,
                int64_t count,
                const char* output,
                void* data,
                size_t bytes,
                size_t* needed);

/* Saves a checkpoint into the run's directory; finishes the step in progress first. */
int rondo_save(rondo_trainer* trainer);

/* What went wrong last on this thread; "" when nothing did. Until the next call of this thread. */
const char* rondo_last_error(void);

/* Ends the run and frees it, without saving: no push may be running, and none may follow. Null is
 * harmless. */
void rondo_close(rondo_trainer* trainer);

#ifdef __cplusplus
}
#endif
