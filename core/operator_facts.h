#pragma once

#include <ATen/core/ivalue.h>
#include <c10/core/ScalarType.h>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

namespace rondo {

/// An operator with its arguments: a call does its work. Between calls tensors keep their shapes;
/// their elements may change, and move.
using PreparedCall = std::function<void()>;

/// Makes a prepared call of an operator, or an empty one when it has none for such arguments.
/// \param arguments  as the operator's schema lists them
using PrepareCall = std::function<PreparedCall(const std::vector<c10::IValue>& arguments)>;

/// A tensor that an operator gets or returns, without its bytes.
struct TensorShape {
  bool is_defined = false;  ///< false: undefined, or no tensor
  at::ScalarType dtype = at::kFloat;
  std::vector<int64_t> sizes = {};

  int64_t elements() const;
  int64_t bytes() const;
};

/// What an operator takes from LibTorch's allocator while it runs, besides its results.
/// \param arguments  one an argument of the schema
/// \param results    one a return of the schema
using ScratchBytes = std::function<int64_t(const std::vector<TensorShape>& arguments,
                                           const std::vector<TensorShape>& results)>;

/// An overload with one argument more, at the end: a number by which it multiplies the gradients
/// first.
struct ScaledForm {
  std::string overload;  ///< such as "scaled"
  size_t gradients = 0;  ///< the place of their list among the arguments; both overloads have it
};

/// What rondo must know of an operator, besides what it computes, to record, shorten and plan steps
/// that call it. Stands where the operator is defined: in rondo, or in a plugin. An operator
/// without facts that writes, or takes a generator, may do anything; LibTorch's own are known.
struct OperatorFacts {
  enum class Effects {
    OfSchema,  ///< writes what the schema says; equal arguments give equal bytes
    Opaque     ///< may do anything: passes never remove, merge or move it
  };

  /// As the dispatcher takes it, with its namespace: "rondo::mm_to_(Tensor(a!) target, ...) -> ()".
  std::string schema;
  Effects effects = Effects::OfSchema;
  /// Other processes take part in it: each calls it as often, and in the same order. Opaque, too.
  bool is_collective = false;
  /// Empty: none.
  ScratchBytes scratch_bytes = nullptr;
  std::optional<ScaledForm> scaled = std::nullopt;
  /// Lets a plan find out once what the operator finds out about its arguments (lists unpacked,
  /// layouts checked). For operators that write their arguments and return nothing; the prepared
  /// call must leave the same bytes. Empty: it is called as it is.
  PrepareCall prepare = nullptr;

  /// With namespace and overload, such as "rondo::sgd_.scaled".
  std::string name() const;
};

/// \throws UsageError  when the schema has no namespace or no arguments, or the operator has facts
void register_operator_facts(OperatorFacts facts);

/// Null when there are none. They stay as long as the process.
/// \param op  with namespace and overload, such as "rondo::sgd_.scaled"
const OperatorFacts* find_operator_facts(const std::string& op);

}  // namespace rondo
