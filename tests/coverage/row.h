#pragma once

#include <ATen/core/Tensor.h>
#include <torch/nn/module.h>

#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace rondo::test {

using Sizes = std::vector<int64_t>;

/// The sizes of most rows.
inline const Sizes kMatrix{8, 6};

/// What a row's step computes with. Other numbers in each step, other integers in the last four;
/// `x` is multiplied by a trained weight, so that gradients flow through whatever is tried.
struct Inputs {
  at::Tensor x;      ///< float32 of the row's sizes, normal; with gradient
  at::Tensor y;      ///< the same, without
  at::Tensor label;  ///< int64 [sizes[0]], 0, 1 or 2
  at::Tensor index;  ///< int64 of the row's sizes, below the last of them
};

/// A step to try: modules to train, and what is made of the inputs.
struct Trained {
  std::shared_ptr<torch::nn::Module> module;  ///< null: none
  std::function<at::Tensor(const Inputs&)> forward;
};

/// One thing of LibTorch's C++ frontend, and a small step that trains with it.
struct Row {
  std::string family;  ///< "module", "loss", "functional", "operator"
  std::string name;
  Sizes sizes;                    ///< of the input
  std::function<Trained()> make;  ///< in each run anew
  bool is_repeatable = true;      ///< false: LibTorch gives other bytes for the same inputs
};

/// All rows, a family a file.
class Rows {
 public:
  explicit Rows(std::string family) : family_(std::move(family)) {}

  void add(std::string name, Sizes sizes, std::function<Trained()> make) {
    rows_.push_back({family_, std::move(name), std::move(sizes), std::move(make)});
  }

  /// Bytes of the last row are not compared: those of two eager runs differ.
  void is_left_to_chance() { rows_.back().is_repeatable = false; }

  /// A module whose forward takes one tensor and gives one.
  /// \param make  its holder
  template <class Make>
  void module(std::string name, Sizes sizes, Make make) {
    add(std::move(name), std::move(sizes), [make] {
      auto made = make();
      return Trained{made.ptr(), [made](const Inputs& in) mutable { return made->forward(in.x); }};
    });
  }

  /// A module, and how it is called.
  /// \param call  gets the holder and the Inputs
  template <class Make, class Call>
  void module(std::string name, Sizes sizes, Make make, Call call) {
    add(std::move(name), std::move(sizes), [make, call] {
      auto made = make();
      return Trained{made.ptr(), [made, call](const Inputs& in) mutable { return call(made, in); }};
    });
  }

  /// A function of `x`.
  void function(std::string name,
                Sizes sizes,
                std::function<at::Tensor(const at::Tensor&)> compute) {
    function(std::move(name), std::move(sizes), [f = std::move(compute)](const Inputs& in) {
      return f(in.x);
    });
  }

  /// A function of the Inputs.
  void function(std::string name, Sizes sizes, std::function<at::Tensor(const Inputs&)> compute) {
    add(std::move(name), std::move(sizes), [f = std::move(compute)] {
      return Trained{nullptr, f};
    });
  }

  std::vector<Row> take() { return std::move(rows_); }

 private:
  std::string family_;
  std::vector<Row> rows_;
};

std::vector<Row> modules_of_layers();
std::vector<Row> modules_of_sequences();
std::vector<Row> losses();
std::vector<Row> functionals();
std::vector<Row> elementwise_operators();
std::vector<Row> other_operators();

}  // namespace rondo::test
