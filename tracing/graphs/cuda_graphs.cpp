#include "tracing/graphs/cuda_graphs.h"

#include <ATen/cuda/CUDAGraph.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/zeros.h>
#include <c10/cuda/CUDACachingAllocator.h>
#include <c10/cuda/CUDAGuard.h>
#include <c10/cuda/CUDAStream.h>

#include <memory>
#include <utility>

namespace rondo {

namespace {

using Pool = decltype(at::cuda::graph_pool_handle());

/// What all graphs of a backend share. One pool: they are launched one after the other, so what one
/// uses within a launch another may use, too; tensors that are alive keep their memory. One stream:
/// cuBLAS keeps a workspace for each.
class Captures {
 public:
  Captures() { anchor(); }

  void capture(at::cuda::CUDAGraph& graph, const std::function<void()>& walk) {
    c10::cuda::getCurrentCUDAStream(stream_.device_index()).synchronize();
    c10::cuda::CUDACachingAllocator::emptyCache();  // a capture gets no memory from there
    try {
      record(graph, walk);
    } catch (...) {
      clean_up();
      throw;
    }
    stream_.synchronize();
  }

 private:
  void record(at::cuda::CUDAGraph& graph, const std::function<void()>& walk) {
    const c10::cuda::CUDAStreamGuard guard(stream_);
    // Thread-local: what a loader's thread allocates meanwhile is not of the graph.
    graph.capture_begin(pool_, cudaStreamCaptureModeThreadLocal);
    try {
      walk();
    } catch (...) {
      end_failed(graph);
      throw;
    }
    graph.capture_end();
  }

  // The walk's own error is the one to tell.
  static void end_failed(at::cuda::CUDAGraph& graph) {
    try {
      graph.capture_end();
    } catch (const c10::Error&) {  // it was invalidated
    }
    graph.reset();
  }

  /// LibTorch ends an invalidated capture half: its memory still comes from the pool, and the
  /// generator still counts for a graph. A whole capture on the same device puts both right.
  void clean_up() {
    try {
      c10::cuda::CUDACachingAllocator::endAllocateToPool(stream_.device_index(), pool_);
    } catch (const c10::Error&) {  // it was ended
    }
    anchor();
  }

  /// A graph of one operation that lives as long as the pool: LibTorch forgets a pool of which no
  /// graph is left, and does not take it again.
  void anchor() {
    auto graph = std::make_unique<at::cuda::CUDAGraph>();
    record(*graph,
           [this] { at::zeros({1}, at::TensorOptions(at::kByte).device(stream_.device())); });
    anchor_ = std::move(graph);
  }

  c10::cuda::CUDAStream stream_ = c10::cuda::getStreamFromPool();
  Pool pool_ = at::cuda::graph_pool_handle();
  std::unique_ptr<at::cuda::CUDAGraph> anchor_;
};

class CudaGraph final : public DeviceGraph {
 public:
  explicit CudaGraph(std::shared_ptr<Captures> captures) : captures_(std::move(captures)) {}

  void capture(const std::function<void()>& walk) override { captures_->capture(graph_, walk); }

  void launch() override { graph_.replay(); }

 private:
  std::shared_ptr<Captures> captures_;
  at::cuda::CUDAGraph graph_;
};

class CudaGraphs final : public DeviceGraphs {
 public:
  std::unique_ptr<DeviceGraph> make_graph() override {
    return std::make_unique<CudaGraph>(captures_);
  }

  // LibTorch's cache of pinned memory gives a block away again once copies from it are done.
  at::Tensor host_bytes(int64_t bytes) override {
    return at::empty({bytes}, at::TensorOptions(at::kByte).pinned_memory(true));
  }

 private:
  std::shared_ptr<Captures> captures_ = std::make_shared<Captures>();
};

}  // namespace

std::unique_ptr<DeviceGraphs> make_cuda_graphs() {
  return std::make_unique<CudaGraphs>();
}

}  // namespace rondo
