/* The C of docs/embedding.md: it compiles as it stands there. */
#include <rondo/rondo_step.h>

float train_once(void);

float train_once(void) {
  static float images[64 * 28 * 28];
  static int64_t labels[64];
  float loss = 0.0f;
  rondo_step* step = rondo_step_open("out.step");
  rondo_step_bind(step, "image", images, sizeof images);     /* read when the step runs */
  rondo_step_bind(step, "label", labels, sizeof labels);
  rondo_step_run(step);                                      /* forward, backward, update */
  rondo_step_read(step, "loss", &loss, sizeof loss);
  rondo_step_save(step, "later.step");                       /* open it again to go on */
  rondo_step_close(step);
  return loss;
}
