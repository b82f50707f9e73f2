#include "tracing/graphs/cuda_graphs.h"

#include <ATen/cuda/CUDAGraph.h>
#include <ATen/ops/empty.h>
#include <c10/cuda/CUDAGuard.h>
#include <c10/cuda/CUDAStream.h>

namespace rondo {

namespace {

using Pool = decltype(at::cuda::graph_pool_handle());

// All graphs of a backend share one pool: they are launched one after the other, so what one uses
// within a launch another may use, too. Tensors that are alive keep their memory.
class CudaGraph final : public DeviceGraph {
 public:
  explicit CudaGraph(Pool pool) : pool_(pool) {}

  void capture(const std::function<void()>& walk) override {
    const c10::cuda::CUDAStream stream = c10::cuda::getStreamFromPool();
    const c10::cuda::CUDAStream outside = c10::cuda::getCurrentCUDAStream();
    outside.synchronize();
    {
      const c10::cuda::CUDAStreamGuard guard(stream);
      // Thread-local: what a loader's thread allocates meanwhile is not of the graph.
      graph_.capture_begin(pool_, cudaStreamCaptureModeThreadLocal);
      try {
        walk();
      } catch (...) {
        end_failed_capture();
        throw;
      }
      graph_.capture_end();
    }
    stream.synchronize();
  }

  void launch() override { graph_.replay(); }

 private:
  // The walk's own error is the one to tell.
  void end_failed_capture() {
    try {
      graph_.capture_end();
    } catch (const c10::Error&) {  // it was invalidated
    }
    graph_.reset();
  }

  at::cuda::CUDAGraph graph_;
  Pool pool_;
};

class CudaGraphs final : public DeviceGraphs {
 public:
  std::unique_ptr<DeviceGraph> make_graph() override { return std::make_unique<CudaGraph>(pool_); }

  // LibTorch's cache of pinned memory gives a block away again once copies from it are done.
  at::Tensor host_bytes(int64_t bytes) override {
    return at::empty({bytes}, at::TensorOptions(at::kByte).pinned_memory(true));
  }

 private:
  Pool pool_ = at::cuda::graph_pool_handle();
};

}  // namespace

std::unique_ptr<DeviceGraphs> make_cuda_graphs() {
  return std::make_unique<CudaGraphs>();
}

}  // namespace rondo
