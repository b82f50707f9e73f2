// The first convolution of a network for images: few channels in, and no gradient for its input.
// oneDNN reorders such images into blocks of channels that are mostly empty; a row of a plane is a
// better vector. Sums are rounded differently: for runs that need not be exact.

#if defined(__x86_64__)

#include <ATen/Parallel.h>
#include <immintrin.h>

#include <algorithm>
#include <cstring>
#include <vector>

#include "backends/plan/kernels/arguments.h"
#include "backends/plan/kernels/kernels.h"

namespace rondo {

namespace {

#define RONDO_AVX512 __attribute__((target("avx512f,avx512dq")))

using Floats = __m512;

constexpr int64_t kWidth = 16;  // elements of a vector
constexpr int64_t kBundle = 4;  // channels out that are computed side by side
constexpr int64_t kFewest = 4;  // channels in, at most
constexpr int kUlps = 256;

/// Of a convolution with stride 1 whose image keeps its size. Planes lie one after another.
struct Geometry {
  int64_t batch;
  int64_t in;
  int64_t out;
  int64_t height;
  int64_t width;
  int64_t kernel;  ///< height and width

  int64_t padding() const { return kernel / 2; }

  int64_t plane() const { return height * width; }

  /// Of a plane with its padding, and room to read a whole vector at any place of it.
  int64_t padded_width() const { return width + 2 * padding() + kWidth; }

  int64_t padded_plane() const { return (height + 2 * padding()) * padded_width(); }

  int64_t taps() const { return in * kernel * kernel; }
};

/// The planes of one image with zeros around them. The zeros are there from the beginning.
void pad(const Geometry& g, const float* image, float* padded) {
  for (int64_t c = 0; c < g.in; ++c) {
    for (int64_t y = 0; y < g.height; ++y) {
      std::memcpy(
          padded + c * g.padded_plane() + (y + g.padding()) * g.padded_width() + g.padding(),
          image + c * g.plane() + y * g.width,
          static_cast<size_t>(g.width) * sizeof(float));
    }
  }
}

/// Of the last vector of a row, the elements that are in it.
RONDO_AVX512 inline __mmask16 row_mask(int64_t left) {
  return left >= kWidth ? static_cast<__mmask16>(0xFFFF)
                        : static_cast<__mmask16>((1U << left) - 1U);
}

RONDO_AVX512 inline float added_up(Floats values) {
  float lanes[kWidth];
  _mm512_storeu_ps(lanes, values);
  float sum = 0.0F;
  for (const float lane : lanes) {
    sum += lane;
  }
  return sum;
}

/// One vector of kBundle channels out.
/// \param weights  of the first channel, [in, kernel, kernel]; the others follow
template <int64_t kKernel>
RONDO_AVX512 void convolve(
    const Geometry& g, const float* padded, const float* weights, const float* bias, float* out) {
  for (int64_t y = 0; y < g.height; ++y) {
    for (int64_t x = 0; x < g.width; x += kWidth) {
      Floats sums[kBundle];
      for (int64_t k = 0; k < kBundle; ++k) {
        sums[k] = _mm512_set1_ps(bias == nullptr ? 0.0F : bias[k]);
      }
      for (int64_t c = 0; c < g.in; ++c) {
        const float* const corner = padded + c * g.padded_plane() + y * g.padded_width() + x;
        for (int64_t tap = 0; tap < kKernel * kKernel; ++tap) {
          const Floats values =
              _mm512_loadu_ps(corner + tap / kKernel * g.padded_width() + tap % kKernel);
          for (int64_t k = 0; k < kBundle; ++k) {
            const float weight = weights[k * g.taps() + c * kKernel * kKernel + tap];
            sums[k] = _mm512_fmadd_ps(values, _mm512_set1_ps(weight), sums[k]);
          }
        }
      }
      for (int64_t k = 0; k < kBundle; ++k) {
        _mm512_mask_storeu_ps(
            out + k * g.plane() + y * g.width + x, row_mask(g.width - x), sums[k]);
      }
    }
  }
}

/// Adds what one image gives to the gradients of kBundle channels: of one row of taps of one
/// channel in.
template <int64_t kKernel>
RONDO_AVX512 void add_gradients(const Geometry& g,
                                const float* padded,
                                const float* dy,
                                double* gradients) {
  Floats sums[kBundle][kKernel];
  for (auto& row : sums) {
    std::fill(std::begin(row), std::end(row), _mm512_setzero_ps());
  }
  for (int64_t y = 0; y < g.height; ++y) {
    for (int64_t x = 0; x < g.width; x += kWidth) {
      Floats values[kKernel];
      for (int64_t i = 0; i < kKernel; ++i) {
        values[i] = _mm512_loadu_ps(padded + y * g.padded_width() + x + i);
      }
      for (int64_t k = 0; k < kBundle; ++k) {
        const Floats slope =
            _mm512_maskz_loadu_ps(row_mask(g.width - x), dy + k * g.plane() + y * g.width + x);
        for (int64_t i = 0; i < kKernel; ++i) {
          sums[k][i] = _mm512_fmadd_ps(values[i], slope, sums[k][i]);
        }
      }
    }
  }
  for (int64_t k = 0; k < kBundle; ++k) {
    for (int64_t i = 0; i < kKernel; ++i) {
      gradients[k * g.taps() + i] += static_cast<double>(added_up(sums[k][i]));
    }
  }
}

RONDO_AVX512 double sum_of_plane(const float* plane, int64_t count) {
  Floats sum = _mm512_setzero_ps();
  for (int64_t i = 0; i < count; i += kWidth) {
    sum = _mm512_add_ps(sum, _mm512_maskz_loadu_ps(row_mask(count - i), plane + i));
  }
  return static_cast<double>(added_up(sum));
}

class ForwardKernel final : public Kernel {
 public:
  ForwardKernel(const Geometry& geometry, Operand x, Operand weight, Operand bias, Operand y)
      : g_(geometry),
        x_(x),
        weight_(weight),
        bias_(bias),
        y_(y),
        padded_(static_cast<size_t>(g_.batch * g_.in * g_.padded_plane() + kWidth)) {}

  /// A convolution without a bias has none.
  void leave_out_bias() { has_bias_ = false; }

  void run() override {
    at::parallel_for(0, g_.batch, 1, [this](int64_t begin, int64_t end) {
      for (int64_t n = begin; n < end; ++n) {
        float* const padded = padded_.data() + n * g_.in * g_.padded_plane();
        pad(g_, x_.as<float>() + n * g_.in * g_.plane(), padded);
        for (int64_t k = 0; k < g_.out; k += kBundle) {
          run_bundle(padded, k, y_.as<float>() + (n * g_.out + k) * g_.plane());
        }
      }
    });
  }

 private:
  void run_bundle(const float* padded, int64_t channel, float* out) const {
    const float* const weights = weight_.as<float>() + channel * g_.taps();
    const float* const bias = has_bias_ ? bias_.as<float>() + channel : nullptr;
    g_.kernel == 3 ? convolve<3>(g_, padded, weights, bias, out)
                   : convolve<5>(g_, padded, weights, bias, out);
  }

  Geometry g_;
  Operand x_;
  Operand weight_;
  Operand bias_;
  Operand y_;
  bool has_bias_ = true;
  std::vector<float> padded_;
};

class BackwardKernel final : public Kernel {
 public:
  BackwardKernel(const Geometry& geometry, Operand dy, Operand x, Operand dweight, Operand dbias)
      : g_(geometry),
        dy_(dy),
        x_(x),
        dweight_(dweight),
        dbias_(dbias),
        padded_(static_cast<size_t>(g_.batch * g_.in * g_.padded_plane() + kWidth)),
        sums_(static_cast<size_t>(g_.out * g_.taps())) {}

  /// A convolution without a bias has no gradient of it.
  void leave_out_bias() { has_bias_ = false; }

  void run() override {
    for (int64_t n = 0; n < g_.batch; ++n) {
      pad(g_, x_.as<float>() + n * g_.in * g_.plane(), padded_of(n));
    }
    at::parallel_for(0, g_.out / kBundle, 1, [this](int64_t begin, int64_t end) {
      for (int64_t bundle = begin; bundle < end; ++bundle) {
        run_bundle(bundle * kBundle);
      }
    });
  }

 private:
  float* padded_of(int64_t n) { return padded_.data() + n * g_.in * g_.padded_plane(); }

  void run_bundle(int64_t channel) {
    double* const sums = sums_.data() + channel * g_.taps();
    std::fill(sums, sums + kBundle * g_.taps(), 0.0);
    double bias[kBundle] = {};
    for (int64_t n = 0; n < g_.batch; ++n) {
      const float* const dy = dy_.as<float>() + (n * g_.out + channel) * g_.plane();
      for (int64_t row = 0; row < g_.in * g_.kernel; ++row) {
        const float* const from = padded_of(n) + row / g_.kernel * g_.padded_plane() +
                                  row % g_.kernel * g_.padded_width();
        g_.kernel == 3 ? add_gradients<3>(g_, from, dy, sums + row * g_.kernel)
                       : add_gradients<5>(g_, from, dy, sums + row * g_.kernel);
      }
      for (int64_t k = 0; has_bias_ && k < kBundle; ++k) {
        bias[k] += sum_of_plane(dy + k * g_.plane(), g_.plane());
      }
    }
    std::copy(sums, sums + kBundle * g_.taps(), dweight_.as<float>() + channel * g_.taps());
    if (has_bias_) {
      std::copy(bias, bias + kBundle, dbias_.as<float>() + channel);
    }
  }

  Geometry g_;
  Operand dy_;
  Operand x_;
  Operand dweight_;
  Operand dbias_;
  bool has_bias_ = true;
  std::vector<float> padded_;
  std::vector<double> sums_;
};

bool are_all(const Argument& list, int64_t value) {
  const std::vector<int64_t> values = list.constant.toIntVector();
  return std::all_of(values.begin(), values.end(), [=](int64_t one) { return one == value; });
}

Geometry geometry_of(const Slot& x, const Slot& weight) {
  return {x.sizes[0], x.sizes[1], weight.sizes[0], x.sizes[2], x.sizes[3], weight.sizes[2]};
}

// Arguments from the stride on are the same forward and backward.
bool has_geometry(const Slot* x,
                  const Slot* weight,
                  const std::vector<Argument>& arguments,
                  size_t stride) {
  static const bool can_run =
      __builtin_cpu_supports("avx512f") != 0 && __builtin_cpu_supports("avx512dq") != 0;
  if (!can_run || !is_plain_float(x) || !is_plain_float(weight) || x->sizes.size() != 4 ||
      numel(*x) == 0) {
    return false;
  }
  const int64_t kernel = weight->sizes[2];
  return x->sizes[1] <= kFewest && weight->sizes[1] == x->sizes[1] &&
         weight->sizes[0] % kBundle == 0 && weight->sizes[3] == kernel &&
         (kernel == 3 || kernel == 5) && are_all(arguments[stride], 1) &&
         are_all(arguments[stride + 1], kernel / 2) && are_all(arguments[stride + 2], 1) &&
         is_constant(arguments[stride + 3], 0.0) && is_constant(arguments[stride + 5], 1.0);
}

// (input, weight, bias, stride, padding, dilation, transposed, output_padding, groups)
bool accepts_forward(const StepProgram& program, const Instruction& instruction) {
  const std::vector<Argument>& arguments = instruction.arguments;
  const bool has_plain_bias =
      is_none(arguments[2]) || is_plain_float(slot_at(program, arguments, 2));
  return has_plain_bias && is_plain_float(slot_at(program, instruction.results, 0)) &&
         has_geometry(slot_at(program, arguments, 0), slot_at(program, arguments, 1), arguments, 3);
}

std::unique_ptr<Kernel> make_forward(const StepProgram& program,
                                     const Instruction& instruction,
                                     const PlanMemory& memory) {
  const std::vector<Argument>& arguments = instruction.arguments;
  const bool has_bias = !is_none(arguments[2]);
  auto kernel = std::make_unique<ForwardKernel>(
      geometry_of(*slot_at(program, arguments, 0), *slot_at(program, arguments, 1)),
      memory.operand(id_at(arguments, 0)),
      memory.operand(id_at(arguments, 1)),
      has_bias ? memory.operand(id_at(arguments, 2)) : Operand(),
      memory.operand(id_at(instruction.results, 0)));
  if (!has_bias) {
    kernel->leave_out_bias();
  }
  return kernel;
}

// (grad_output, input, weight, bias_sizes, stride, padding, dilation, transposed, output_padding,
// groups, output_mask)
bool accepts_backward(const StepProgram& program, const Instruction& instruction) {
  const std::vector<Argument>& arguments = instruction.arguments;
  const Slot* const dbias = slot_at(program, instruction.results, 2);
  return slot_at(program, instruction.results, 0) == nullptr &&
         is_plain_float(slot_at(program, instruction.results, 1)) &&
         (dbias == nullptr || is_plain_float(dbias)) &&
         is_plain_float(slot_at(program, arguments, 0)) &&
         has_geometry(slot_at(program, arguments, 1), slot_at(program, arguments, 2), arguments, 4);
}

std::unique_ptr<Kernel> make_backward(const StepProgram& program,
                                      const Instruction& instruction,
                                      const PlanMemory& memory) {
  const std::vector<Argument>& arguments = instruction.arguments;
  const bool has_bias = slot_at(program, instruction.results, 2) != nullptr;
  auto kernel = std::make_unique<BackwardKernel>(
      geometry_of(*slot_at(program, arguments, 1), *slot_at(program, arguments, 2)),
      memory.operand(id_at(arguments, 0)),
      memory.operand(id_at(arguments, 1)),
      memory.operand(id_at(instruction.results, 1)),
      has_bias ? memory.operand(id_at(instruction.results, 2)) : Operand());
  if (!has_bias) {
    kernel->leave_out_bias();
  }
  return kernel;
}

}  // namespace

std::vector<OwnKernel> first_convolution_kernels() {
  return {{"aten::convolution", accepts_forward, make_forward, kUlps},
          {"aten::convolution_backward", accepts_backward, make_backward, kUlps}};
}

}  // namespace rondo

#else

#include "backends/plan/kernels/kernels.h"

namespace rondo {

std::vector<OwnKernel> first_convolution_kernels() {
  return {};
}

}  // namespace rondo

#endif
