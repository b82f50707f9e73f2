/* Trains on what this program computes, while it computes it: ring_in_c run.toml
 * Expected output: "400 updates, N of 100 right" with N above 90. */

#include <rondo/rondo_train.h>
#include <stdio.h>
#include <stdlib.h>

static int fail(rondo_trainer* trainer) {
  fprintf(stderr, "%s\n", rondo_last_error());
  rondo_close(trainer);
  return 1;
}

/* One result of the "simulation": two numbers, and whether the first is larger. */
static void simulate(float x[2], int64_t* label) {
  x[0] = 20.0f + (float)(rand() % 1000);
  x[1] = 20.0f + (float)(rand() % 1000);
  *label = x[0] > x[1];
}

int main(int argc, char** argv) {
  rondo_trainer* trainer = NULL;
  if (argc != 2 || rondo_open(argv[1], &trainer) != RONDO_OK) {
    fprintf(stderr, "usage: ring_in_c run.toml\n");
    return fail(trainer);
  }
  const int64_t two = 2;
  int code = RONDO_OK;
  while (code == RONDO_OK) {
    for (int i = 0; i < 100; ++i) {
      float x[2];
      int64_t label;
      simulate(x, &label);
      const rondo_array sample[] = {{"x", RONDO_FLOAT32, 1, &two, x},
                                    {"label", RONDO_INT64, 0, NULL, &label}};
      if (rondo_push(trainer, sample, 2) < RONDO_OK) {
        return fail(trainer);
      }
    }
    code = rondo_train_steps(trainer, 10);
  }
  if (code != RONDO_DONE || rondo_save(trainer) != RONDO_OK) {
    return fail(trainer);
  }
  float inputs[100][2];
  int64_t labels[100];
  float logits[100][2];
  const int64_t sizes[] = {100, 2};
  for (int i = 0; i < 100; ++i) {
    simulate(inputs[i], &labels[i]);
  }
  const int64_t hundred = 100;
  const rondo_array batch[] = {{"x", RONDO_FLOAT32, 2, sizes, inputs},
                               {"label", RONDO_INT64, 1, &hundred, labels}};
  if (rondo_infer(trainer, batch, 2, "logits", logits, sizeof logits, NULL) != RONDO_OK) {
    return fail(trainer);
  }
  int right = 0;
  for (int i = 0; i < 100; ++i) {
    right += (logits[i][1] > logits[i][0]) == (int)labels[i];
  }
  printf("%lld updates, %d of 100 right\n", (long long)rondo_updates(trainer), right);
  rondo_close(trainer);
  return right > 90 ? 0 : 1;
}
