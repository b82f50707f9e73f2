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

/// An operator with its arguments: a call runs it. Between calls tensors keep their shapes; their
/// elements may change or move.
using PreparedCall = std::function<void()>;

/// Prepares a call of an operator; returns an empty function if it cannot for these arguments.
/// \param arguments  as the operator's schema lists them
using PrepareCall = std::function<PreparedCall(const std::vector<c10::IValue>& arguments)>;

/// A tensor that an operator receives or returns, without its bytes.
struct TensorShape {
  bool is_defined = false;  ///< false: undefined, or no tensor
  at::ScalarType dtype = at::kFloat;
  std::vector<int64_t> sizes = {};

  int64_t elements() const;
  int64_t bytes() const;
};

/// The bytes that an operator allocates from LibTorch while it runs, besides its results.
/// \param arguments  one per argument of the schema
/// \param results    one per return of the schema
using ScratchBytes = std::function<int64_t(const std::vector<TensorShape>& arguments,
                                           const std::vector<TensorShape>& results)>;

/// An overload with one more argument, at the end: a number by which it first multiplies the
/// gradients.
struct ScaledForm {
  std::string overload;  ///< such as "scaled"
  size_t gradients = 0;  ///< index of their list among the arguments of both overloads
};

/// What rondo must know about an operator to record, shorten and plan steps that call it.
/// Registered where the operator is defined: in rondo, or in a plugin. Without facts, rondo assumes
/// that an operator that writes or takes a generator may do anything; it knows LibTorch's own.
struct OperatorFacts {
  enum class Effects {
    OfSchema,  ///< writes what the schema says; equal arguments give equal bytes
    Opaque     ///< may do anything: passes never remove, merge or move it
  };

  /// As for the dispatcher, with its namespace: "rondo::mm_to_(Tensor(a!) target, ...) -> ()".
  std::string schema;
  Effects effects = Effects::OfSchema;
  /// Other processes take part in it: all must call it equally often and in the same order. Opaque,
  /// too.
  bool is_collective = false;
  /// Empty: none.
  ScratchBytes scratch_bytes = nullptr;
  std::optional<ScaledForm> scaled = std::nullopt;
  /// Lets a plan analyse the operator's arguments once instead of in every call (unpack lists,
  /// check layouts). For operators that write their arguments and return nothing; the prepared call
  /// must leave the same bytes. Empty: rondo calls the operator normally.
  PrepareCall prepare = nullptr;

  /// With namespace and overload, such as "rondo::sgd_.scaled".
  std::string name() const;
};

/// \throws UsageError  when the schema has no namespace or no arguments, or the operator already
///                     has facts
void register_operator_facts(OperatorFacts facts);

/// Null when there are none. Valid for the life of the process.
/// \param op  with namespace and overload, such as "rondo::sgd_.scaled"
const OperatorFacts* find_operator_facts(const std::string& op);

}  // namespace rondo
