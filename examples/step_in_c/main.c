/* Trains the quickstart model from C: no config, no Python, no C++.
 *
 *   rondo export-step configs/recipes/quickstart.toml quickstart.step
 *   step_in_c quickstart.step trained.step
 */
#include <rondo/rondo_step.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { kBatch = 64, kSide = 28, kPixels = kSide * kSide, kSteps = 300 };

static unsigned next_random(unsigned* state) {
  *state = *state * 1664525u + 1013904223u;
  return *state >> 16;
}

/* Class k of ten: a cross whose bars stand in row 2 + 2k and column 24 - 2k, and some noise. */
static void draw(float* image, int64_t label, unsigned* random) {
  for (int y = 0; y < kSide; ++y) {
    for (int x = 0; x < kSide; ++x) {
      const int is_on = y == 2 + 2 * label || x == 24 - 2 * label;
      image[y * kSide + x] = (is_on ? 0.8f : 0.0f) + (float)(next_random(random) % 1000) / 4000.0f;
    }
  }
}

static int fail(rondo_step* step) {
  fprintf(stderr, "%s\n", rondo_step_error());
  rondo_step_close(step);
  return 1;
}

int main(int argc, char** argv) {
  if (argc != 3) {
    fprintf(stderr, "usage: step_in_c IN.step OUT.step\n");
    return 2;
  }
  rondo_step* step = rondo_step_open(argv[1]);
  if (step == NULL) {
    return fail(step);
  }
  for (int64_t i = 0; i < rondo_step_inputs(step); ++i) {
    rondo_tensor input;
    if (!rondo_step_input(step, i, &input)) {
      return fail(step);
    }
    printf("input %s: %zu bytes\n", input.name, input.bytes);
  }

  static float images[kBatch * kPixels];
  static int64_t labels[kBatch];
  if (!rondo_step_bind(step, "image", images, sizeof images) ||
      !rondo_step_bind(step, "label", labels, sizeof labels)) {
    return fail(step);
  }
  unsigned random = 1;
  float loss = 0.0f;
  for (int i = 1; i <= kSteps; ++i) {
    for (int b = 0; b < kBatch; ++b) {
      labels[b] = next_random(&random) % 10;
      draw(images + b * kPixels, labels[b], &random);
    }
    if (rondo_step_run(step) != 1 || !rondo_step_read(step, "loss", &loss, sizeof loss)) {
      return fail(step);
    }
    if (i == 1 || i % 100 == 0) {
      printf("step %d: loss %.4f\n", i, loss);
    }
  }
  if (!rondo_step_save(step, argv[2])) {
    return fail(step);
  }
  rondo_step_close(step);
  return loss < 0.1f ? 0 : 1;
}
