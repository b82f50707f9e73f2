#include <ATen/ops/stack.h>
#include <rondo/rondo.h>

/// Logs the joint norm of the gradients; the same code eager and traced.
struct GradNorm final : rondo::Callback {
  void on_before_optimizer_step(rondo::Trainer& trainer,
                                rondo::Model&,
                                rondo::Optimizer& optimizer) override {
    std::vector<at::Tensor> norms;
    for (const at::Tensor& grad : optimizer.grads()) {
      norms.push_back(grad.norm());
    }
    trainer.log_metrics(
        {{"grad_norm", at::stack(norms).norm()}});  // read after the step, on log steps
  }
};
