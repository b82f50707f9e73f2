#pragma once

#include <dnnl.hpp>

#include <vector>

#include "tracing/onednn/onednn_call.h"

namespace rondo::onednn {

/// The CPU.
const dnnl::engine& engine();

/// Memory that is not the library's.
dnnl::primitive_attr scratchpad_of_ours();

/// One primitive with its tensors. Those that the caller keeps in another layout than it asked for
/// are copied to and from memory of the call's.
class Call final : public OneDnnCall {
 public:
  /// Where a primitive keeps what it needs while it runs.
  enum class Scratch {
    Own,    ///< memory of the call
    Shared  ///< memory of all such calls of a thread, which stays in its caches; not in `bytes`
  };

  /// \param primitive    with `scratchpad_of_ours`
  /// \param scratchpad  what it asks for
  Call(dnnl::primitive primitive,
       const dnnl::memory::desc& scratchpad,
       Scratch scratch = Scratch::Own);

  /// Adds an argument. Arguments are given to `run` in the order in which they were added.
  /// \param index    such as DNNL_ARG_SRC
  /// \param outside  how it lies in the caller's memory
  /// \param inside   how the primitive wants it
  void read(int index, const dnnl::memory::desc& outside, const dnnl::memory::desc& inside);

  /// The same for a result.
  void write(int index, const dnnl::memory::desc& outside, const dnnl::memory::desc& inside);

  void run(std::initializer_list<const void*> tensors) override;

  int64_t bytes() const override { return bytes_; }

 private:
  using Arguments = std::vector<dnnl_exec_arg_t>;

  /// A copy from one layout to another.
  struct Copy {
    dnnl::reorder reorder;
    Arguments arguments;
  };

  void add(int index, dnnl::memory memory);
  dnnl::memory outside_of(const dnnl::memory::desc& outside);
  dnnl::memory inside_of(const dnnl::memory::desc& inside);
  Copy copy_of(const dnnl::memory& from, const dnnl::memory& to);
  void execute(const dnnl::primitive& primitive, const Arguments& arguments);

  dnnl::stream stream_;
  dnnl::primitive primitive_;
  std::vector<dnnl::memory> tensors_;   // the caller's
  std::vector<dnnl::memory> memories_;  // ours
  dnnl::memory shared_scratchpad_;      // none: it is one of ours
  Arguments arguments_;
  std::vector<Copy> before_;
  std::vector<Copy> after_;
  int64_t bytes_ = 0;
};

}  // namespace rondo::onednn
