#include "by_hand.h"

#include <ATen/core/dispatch/Dispatcher.h>
#include <torch/torch.h>

#include <string>
#include <utility>
#include <vector>

#include "contender_parts.h"
#include "core/error.h"
#include "tracing/graphs/device_graphs.h"

namespace bench {

using namespace rondo;

namespace {

class HandWritten final : public Contender {
 public:
  HandWritten(const Workload& w, const Settings& settings)
      : w_(w), place_(place_of(settings)), batches_(w, settings.copies, place_.device) {
    net_ = seeded_network(w, place_.device);
    const std::vector<at::Tensor> parameters = net_->parameters();
    if (w.rule == Rule::SgdMomentum) {
      optimizer_ = std::make_unique<torch::optim::SGD>(
          parameters, torch::optim::SGDOptions(w.lr).momentum(0.9));
    } else if (w.rule == Rule::Adam) {
      optimizer_ =
          std::make_unique<torch::optim::Adam>(parameters, torch::optim::AdamOptions(w.lr));
    } else {
      optimizer_ =
          std::make_unique<torch::optim::AdamW>(parameters, torch::optim::AdamWOptions(w.lr));
    }
  }

  void train(int64_t updates) override {
    for (int64_t i = 0; i < updates; ++i, ++update_) {
      optimizer_->zero_grad();
      for (int64_t m = 0; m < w_.micro_batches; ++m) {
        loss_ = loss_of(*net_, batches_.next(), place_);
        (w_.micro_batches > 1 ? loss_ / static_cast<double>(w_.micro_batches) : loss_).backward();
      }
      if (w_.clip_norm > 0.0) {
        torch::nn::utils::clip_grad_norm_(net_->parameters(), w_.clip_norm);
      }
      if (w_.is_scheduled) {
        optimizer_->param_groups()[0].options().set_lr(cosine(w_.lr, update_));
      }
      optimizer_->step();
      if (w_.is_scheduled && update_ % kLogEvery == 0) {
        logged_ = loss_.item<double>();
      }
      if (is_save_due(w_, update_)) {
        torch::save(net_, (scratch_.path() / "model.pt").string());
        torch::save(*optimizer_, (scratch_.path() / "optimizer.pt").string());
      }
    }
  }

  double loss() const override { return loss_.item<double>(); }

 private:
  Workload w_;
  Place place_;
  RepeatedBatch batches_;
  std::shared_ptr<Network> net_;
  std::unique_ptr<torch::optim::Optimizer> optimizer_;
  at::Tensor loss_;
  Scratch scratch_{"by_hand"};
  int64_t update_ = 0;
  double logged_ = 0.0;
};

/// Calls one of LibTorch's fused updates, which only some versions have.
void call_by_name(const char* name, torch::jit::Stack arguments) {
  c10::Dispatcher::singleton().findSchemaOrThrow(name, "").callBoxed(&arguments);
}

class HandMadeGraph final : public Contender {
 public:
  HandMadeGraph(const Workload& w, const Settings& settings)
      : w_(w), place_(place_of(settings)), batches_(w, settings.copies, place_.device) {
    graphs_ = make_device_graphs(place_.device.type());
    if (graphs_ == nullptr || w.micro_batches > 1 || w.clip_norm > 0.0) {
      throw NotSupportedError("graph: not for " + w.name + " on " + settings.device);
    }
    net_ = seeded_network(w, place_.device);
    for (const at::Tensor& parameter : net_->parameters()) {
      parameters_.push_back(parameter);
      first_moments_.push_back(at::zeros_like(parameter));
      second_moments_.push_back(at::zeros_like(parameter));
      counts_.push_back(at::zeros({}, parameter.options().dtype(at::kFloat)));
    }
    for (const auto& [name, tensor] : batches_.next().items()) {
      input_.set(name, tensor.clone());
    }
    for (int i = 0; i < kStepsBefore; ++i) {
      step();
    }
    zero_grad();  // gradients of the graph lie in its memory
    graph_ = graphs_->make_graph();
    graph_->capture([this] { step(); });
  }

  void train(int64_t updates) override {
    for (int64_t i = 0; i < updates; ++i) {
      for (const auto& [name, tensor] : batches_.next().items()) {
        input_[name].copy_(tensor, /*non_blocking=*/true);
      }
      graph_->launch();
    }
  }

  double loss() const override { return loss_.item<double>(); }

 private:
  static constexpr int kStepsBefore = 3;  // cuBLAS and cuDNN make their memory in them

  void zero_grad() {
    for (at::Tensor& parameter : parameters_) {
      parameter.mutable_grad().reset();
    }
  }

  void step() {
    zero_grad();
    loss_ = loss_of(*net_, input_, place_);
    loss_.backward();
    const at::NoGradGuard no_grad;
    std::vector<at::Tensor> grads;
    for (const at::Tensor& parameter : parameters_) {
      grads.push_back(parameter.grad());
    }
    update(grads);
  }

  void update(const std::vector<at::Tensor>& grads) {
    if (w_.rule == Rule::SgdMomentum) {
      call_by_name("aten::_fused_sgd_",
                   {parameters_,
                    grads,
                    first_moments_,
                    /*weight_decay=*/0.0,
                    /*momentum=*/0.9,
                    w_.lr,
                    /*dampening=*/0.0,
                    /*nesterov=*/false,
                    /*maximize=*/false,
                    /*is_first_step=*/false,
                    /*grad_scale=*/c10::IValue(),
                    /*found_inf=*/c10::IValue()});
      return;
    }
    const bool is_decoupled = w_.rule == Rule::AdamW;
    at::_foreach_add_(counts_, 1);
    call_by_name(is_decoupled ? "aten::_fused_adamw_" : "aten::_fused_adam_",
                 {parameters_,
                  grads,
                  first_moments_,
                  second_moments_,
                  /*max_exp_avg_sqs=*/std::vector<at::Tensor>(),
                  counts_,
                  w_.lr,
                  /*beta1=*/0.9,
                  /*beta2=*/0.999,
                  /*weight_decay=*/is_decoupled ? 0.01 : 0.0,
                  /*eps=*/1e-8,
                  /*amsgrad=*/false,
                  /*maximize=*/false,
                  /*grad_scale=*/c10::IValue(),
                  /*found_inf=*/c10::IValue()});
  }

  Workload w_;
  Place place_;
  RepeatedBatch batches_;
  Batch input_;
  std::unique_ptr<DeviceGraphs> graphs_;
  std::shared_ptr<Network> net_;
  std::vector<at::Tensor> parameters_;
  std::vector<at::Tensor> first_moments_;
  std::vector<at::Tensor> second_moments_;
  std::vector<at::Tensor> counts_;
  at::Tensor loss_;
  std::unique_ptr<DeviceGraph> graph_;
};

}  // namespace

std::unique_ptr<Contender> make_hand_written(const Workload& w, const Settings& settings) {
  return std::make_unique<HandWritten>(w, settings);
}

std::unique_ptr<Contender> make_hand_made_graph(const Workload& w, const Settings& settings) {
  return std::make_unique<HandMadeGraph>(w, settings);
}

}  // namespace bench
