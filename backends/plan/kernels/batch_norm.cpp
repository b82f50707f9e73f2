// Compiled with -ffp-contract=off (backends/CMakeLists.txt): what LibTorch's AVX2 build fuses is
// written as `fma`. See core/vector_loop.h.

#include <ATen/Parallel.h>

#include <algorithm>
#include <cmath>

#include "backends/plan/kernels/arguments.h"
#include "backends/plan/kernels/kernels.h"
#include "backends/plan/kernels/lanes.h"
#include "core/vector_loop.h"

namespace rondo {

namespace {

// LibTorch adds the elements of a channel in double precision, one after the other, so that each
// addition waits for the last one. Several channels side by side keep the order and do not wait.
// Source: batch_norm_cpu_collect_stats_contiguous_impl, ATen/native/cpu/batch_norm_kernel.cpp, and
// batch_norm_cpu_update_stats_template, ATen/native/Normalization.cpp.
constexpr int64_t kChains = 8;

/// [batch, channels, image…], contiguous.
struct Shape {
  int64_t batch;
  int64_t channels;
  int64_t image;

  int64_t per_channel() const { return batch * image; }
};

/// Calls `add(chain, index)` for each element of kCount neighbouring channels, the channels side by
/// side.
template <int64_t kCount, class AddElement>
RONDO_INLINE void walk(const Shape& shape, int64_t channel, AddElement add) {
  for (int64_t n = 0; n < shape.batch; ++n) {
    const int64_t plane = (n * shape.channels + channel) * shape.image;
    for (int64_t i = 0; i < shape.image; ++i) {
      for (int64_t k = 0; k < kCount; ++k) {
        add(k, plane + k * shape.image + i);
      }
    }
  }
}

/// Splits channels into bundles of kChains and single ones.
template <class Channels>
void for_channels(int64_t count, Channels channels) {
  at::parallel_for(0, (count + kChains - 1) / kChains, 1, [&](int64_t begin, int64_t end) {
    for (int64_t bundle = begin; bundle < end; ++bundle) {
      const int64_t first = bundle * kChains;
      if (first + kChains <= count) {
        channels.template run<kChains>(first);
      } else {
        for (int64_t channel = first; channel < count; ++channel) {
          channels.template run<1>(channel);
        }
      }
    }
  });
}

/// Calls `element(i, channel)` for all elements, plane by plane.
template <class Plane>
void for_planes(const Shape& shape, Plane plane) {
  at::parallel_for(0, shape.batch * shape.channels, 1, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      plane(i * shape.image, i % shape.channels);
    }
  });
}

struct Statistics {
  const float* x;
  Shape shape;
  float momentum;
  double eps;
  float* running_mean;
  float* running_var;
  float* mean;
  float* inverse_deviation;

  template <int64_t kCount>
  void run(int64_t channel) const {
    double sums[kCount] = {};
    const float* const data = x;
    walk<kCount>(shape, channel, [&](int64_t k, int64_t i) RONDO_INLINE_LAMBDA {
      sums[k] += static_cast<double>(data[i]);
    });
    float means[kCount];
    double squares[kCount] = {};
    for (int64_t k = 0; k < kCount; ++k) {
      means[k] = static_cast<float>(sums[k] / static_cast<double>(shape.per_channel()));
    }
    walk<kCount>(shape, channel, [&](int64_t k, int64_t i) RONDO_INLINE_LAMBDA {
      const float centred = data[i] - means[k];
      squares[k] += static_cast<double>(centred * centred);
    });
    for (int64_t k = 0; k < kCount; ++k) {
      finish(channel + k, means[k], static_cast<float>(squares[k]));
    }
  }

  void finish(int64_t channel, float channel_mean, float squares) const {
    const int64_t n = shape.per_channel();
    const double variance = squares / static_cast<float>(n);
    const float unbiased = squares / static_cast<float>(n - 1);
    mean[channel] = channel_mean;
    inverse_deviation[channel] = static_cast<float>(1.0 / std::sqrt(variance + eps));
    running_mean[channel] = momentum * channel_mean + (1.0F - momentum) * running_mean[channel];
    running_var[channel] =
        static_cast<float>(static_cast<double>(momentum) * static_cast<double>(unbiased) +
                           static_cast<double>((1.0F - momentum) * running_var[channel]));
  }
};

/// In training: normalises with the statistics of the batch and moves the running ones.
class BatchNormKernel final : public Kernel {
 public:
  struct Tensors {
    Operand x;
    Operand weight;
    Operand bias;
    Operand running_mean;
    Operand running_var;
    Operand y;
    Operand mean;
    Operand inverse_deviation;
  };

  BatchNormKernel(const Tensors& tensors, const Shape& shape, float momentum, double eps)
      : t_(tensors), shape_(shape), momentum_(momentum), eps_(eps) {}

  void run() override {
    const auto* const x = t_.x.as<float>();
    auto* const y = t_.y.as<float>();
    const auto* const weight = t_.weight.as<float>();
    const auto* const bias = t_.bias.as<float>();
    const auto* const mean = t_.mean.as<float>();
    const auto* const inverse_deviation = t_.inverse_deviation.as<float>();
    for_channels(shape_.channels,
                 Statistics{x,
                            shape_,
                            momentum_,
                            eps_,
                            t_.running_mean.as<float>(),
                            t_.running_var.as<float>(),
                            t_.mean.as<float>(),
                            t_.inverse_deviation.as<float>()});
    for_planes(shape_, [&](int64_t plane, int64_t channel) {
      const float scale = inverse_deviation[channel] * weight[channel];
      const float shift = std::fma(-mean[channel], scale, bias[channel]);
      const float* const in = x + plane;
      float* const out = y + plane;
      vector_loop([=](int64_t i)
                      RONDO_INLINE_LAMBDA { out[i] = __builtin_fmaf(in[i], scale, shift); },
                  shape_.image);
    });
  }

 private:
  Tensors t_;
  Shape shape_;
  float momentum_;
  double eps_;
};

/// The same with each plane added up in eight lanes, and each channel normalised while it is near.
class BatchNormInLanesKernel final : public Kernel {
 public:
  BatchNormInLanesKernel(const BatchNormKernel::Tensors& tensors,
                         const Shape& shape,
                         float momentum,
                         double eps)
      : t_(tensors), shape_(shape), momentum_(momentum), eps_(eps) {}

  void run() override {
    const Statistics statistics{t_.x.as<float>(),
                                shape_,
                                momentum_,
                                eps_,
                                t_.running_mean.as<float>(),
                                t_.running_var.as<float>(),
                                t_.mean.as<float>(),
                                t_.inverse_deviation.as<float>()};
    at::parallel_for(0, shape_.channels, 1, [&](int64_t begin, int64_t end) {
      for (int64_t channel = begin; channel < end; ++channel) {
        const float mean = static_cast<float>(sum_of(channel, 0.0F, /*squares=*/false) /
                                              static_cast<double>(shape_.per_channel()));
        statistics.finish(
            channel, mean, static_cast<float>(sum_of(channel, mean, /*squares=*/true)));
        normalise(channel);
      }
    });
  }

 private:
  /// Of x - mean, or of its squares.
  RONDO_AVX2 double sum_of(int64_t channel, float mean, bool squares) const {
    const Lanes means = mean - Lanes{};
    double sum = 0.0;
    for (int64_t n = 0; n < shape_.batch; ++n) {
      const float* const x = plane(t_.x, n, channel);
      Lanes sums[kSums] = {};
      int64_t i = 0;
      for (; i + kSums * kLanes <= shape_.image; i += kSums * kLanes) {
        for (int64_t k = 0; k < kSums; ++k) {
          const Lanes centred = load(x + i + k * kLanes) - means;
          sums[k] = squares ? fused(centred, centred, sums[k]) : sums[k] + centred;
        }
      }
      float rest = 0.0F;
      for (; i < shape_.image; ++i) {
        const float centred = x[i] - mean;
        rest += squares ? centred * centred : centred;
      }
      sum += static_cast<double>(added_up((sums[0] + sums[1]) + (sums[2] + sums[3])) + rest);
    }
    return sum;
  }

  void normalise(int64_t channel) const {
    const float scale = t_.inverse_deviation.as<float>()[channel] * t_.weight.as<float>()[channel];
    const float shift =
        std::fma(-t_.mean.as<float>()[channel], scale, t_.bias.as<float>()[channel]);
    for (int64_t n = 0; n < shape_.batch; ++n) {
      const float* const in = plane(t_.x, n, channel);
      float* const out = plane(t_.y, n, channel);
      vector_loop([=](int64_t i)
                      RONDO_INLINE_LAMBDA { out[i] = __builtin_fmaf(in[i], scale, shift); },
                  shape_.image);
    }
  }

  float* plane(const Operand& tensor, int64_t n, int64_t channel) const {
    return tensor.as<float>() + (n * shape_.channels + channel) * shape_.image;
  }

  static constexpr int64_t kSums = 4;

  BatchNormKernel::Tensors t_;
  Shape shape_;
  float momentum_;
  double eps_;
};

bool is_true(const Argument& argument) {
  return is_constant(argument, 1.0);
}

bool are_plain_floats(const StepProgram& program,
                      const std::vector<Argument>& arguments,
                      std::initializer_list<size_t> places) {
  return std::all_of(places.begin(), places.end(), [&](size_t i) {
    return is_plain_float(slot_at(program, arguments, i));
  });
}

Shape shape_of(const Slot& x) {
  return {x.sizes[0], x.sizes[1], numel(x) / (x.sizes[0] * x.sizes[1])};
}

// (input, weight, bias, running_mean, running_var, training, momentum, eps)
bool accepts(const StepProgram& program, const Instruction& instruction) {
  return are_plain_floats(program, instruction.arguments, {0, 1, 2, 3, 4}) &&
         are_plain_floats(program, instruction.results, {0, 1, 2}) &&
         is_true(instruction.arguments[5]) &&
         slot_at(program, instruction.arguments, 0)->sizes.size() >= 3 &&
         numel(*slot_at(program, instruction.arguments, 0)) > 0;
}

bool accepts_in_lanes(const StepProgram& program, const Instruction& instruction) {
  return widest_instruction_set() == InstructionSet::Avx2 && accepts(program, instruction);
}

template <class AnyKernel>
std::unique_ptr<Kernel> make(const StepProgram& program,
                             const Instruction& instruction,
                             const PlanMemory& memory) {
  const auto argument = [&](size_t i) { return memory.operand(id_at(instruction.arguments, i)); };
  const auto result = [&](size_t i) { return memory.operand(id_at(instruction.results, i)); };
  return std::make_unique<AnyKernel>(
      BatchNormKernel::Tensors{argument(0),
                               argument(1),
                               argument(2),
                               argument(3),
                               argument(4),
                               result(0),
                               result(1),
                               result(2)},
      shape_of(*slot_at(program, instruction.arguments, 0)),
      static_cast<float>(instruction.arguments[6].constant.toDouble()),
      instruction.arguments[7].constant.toDouble());
}

}  // namespace

std::vector<OwnKernel> batch_norm_kernels() {
  constexpr int kUlps = 64;
  return {{"aten::native_batch_norm", accepts_in_lanes, make<BatchNormInLanesKernel>, kUlps},
          {"aten::native_batch_norm", accepts, make<BatchNormKernel>}};
}

}  // namespace rondo
