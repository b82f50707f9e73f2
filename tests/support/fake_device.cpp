#include "support/fake_device.h"

#include <torch/version.h>

#if TORCH_VERSION_MAJOR > 2 || (TORCH_VERSION_MAJOR == 2 && TORCH_VERSION_MINOR >= 4)

#include <ATen/CPUGeneratorImpl.h>
#include <ATen/core/LegacyTypeDispatch.h>
#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/core/stack.h>
#include <ATen/detail/PrivateUse1HooksInterface.h>
#include <c10/core/impl/DeviceGuardImplInterface.h>
#include <torch/library.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

#include "tracing/graphs/device_graphs.h"

namespace rondo::test {

namespace {

constexpr c10::DeviceType kFake = c10::kPrivateUse1;

FakeDeviceCounts counts;

// --- memory

/// Memory of graphs: what a capture let go is given to its later results.
struct Pool {
  std::vector<std::pair<void*, size_t>> free;

  ~Pool() {
    for (const auto& [data, bytes] : free) {
      std::free(data);
    }
  }
};

struct Block {
  void* data;
  size_t bytes;
  std::shared_ptr<Pool> pool;  // null outside of captures
};

class FakeGraph;
FakeGraph* capturing = nullptr;  // steps run on one thread
std::shared_ptr<Pool> pool_of(FakeGraph* graph);

void give_back(void* context) {
  const std::unique_ptr<Block> block(static_cast<Block*>(context));
  std::memset(block->data, 0xFF, block->bytes);
  if (block->pool != nullptr) {
    block->pool->free.emplace_back(block->data, block->bytes);
  } else {
    std::free(block->data);
  }
}

class FakeAllocator final : public c10::Allocator {
 public:
  c10::DataPtr allocate(size_t bytes) override {
    auto block = std::make_unique<Block>(Block{nullptr, std::max<size_t>(bytes, 1), nullptr});
    if (capturing != nullptr) {
      take_from_pool(*block);
    }
    if (block->data == nullptr) {
      block->data = std::aligned_alloc(64, (block->bytes + 63) / 64 * 64);
      counts.graph_memory += block->pool != nullptr ? static_cast<int64_t>(block->bytes) : 0;
    }
    std::memset(block->data, 0xFF, block->bytes);
    void* const data = block->data;
    return {data, block.release(), &give_back, c10::Device(kFake, 0)};
  }

  c10::DeleterFnPtr raw_deleter() const override { return nullptr; }

  void copy_data(void* to, const void* from, std::size_t bytes) const override {
    std::memcpy(to, from, bytes);
  }

 private:
  static void take_from_pool(Block& block) {
    block.pool = pool_of(capturing);
    auto& free = block.pool->free;
    const auto fits = std::find_if(free.begin(), free.end(), [&](const auto& other) {
      return other.second >= block.bytes && other.second <= 2 * block.bytes;
    });
    if (fits != free.end()) {
      block.data = fits->first;
      block.bytes = fits->second;
      free.erase(fits);
    }
  }
};

// --- operators

at::Generator& generator() {
  static at::Generator own = at::detail::createCPUGenerator(1);
  return own;
}

bool is_fake(const at::Tensor& tensor) {
  return tensor.defined() && tensor.device().type() == kFake;
}

at::Tensor make_tensor(const c10::Storage& storage, const at::Tensor& like, c10::DispatchKey key) {
  at::Tensor tensor = at::detail::make_tensor<c10::TensorImpl>(
      c10::Storage(storage), c10::DispatchKeySet(key), like.dtype());
  tensor.unsafeGetTensorImpl()->set_sizes_and_strides(
      like.sizes(), like.strides(), like.storage_offset());
  if (like.unsafeGetTensorImpl()->is_wrapped_number()) {
    tensor.unsafeGetTensorImpl()->set_wrapped_number(true);
  }
  return tensor;
}

/// Tensors of the device as ones of the CPU on the same bytes, and back.
class Aliases {
 public:
  at::Tensor on_host(const at::Tensor& tensor) {
    if (!is_fake(tensor)) {
      return tensor.defined() && capturing != nullptr ? as_it_is_now(tensor) : tensor;
    }
    c10::StorageImpl* const fake = tensor.storage().unsafeGetStorageImpl();
    if (fake->nbytes() == 0) {  // an operator may make it larger
      return keep(at::empty(tensor.sizes(), tensor.dtype()), tensor);
    }
    auto& host = hosts_[fake];
    if (!host) {
      const c10::DataPtr& memory = fake->data_ptr();
      host = c10::Storage(c10::Storage::use_byte_size_t(),
                          fake->nbytes(),
                          c10::DataPtr(memory.get(), c10::Device(c10::kCPU)),
                          /*allocator=*/nullptr,
                          /*resizable=*/false);
      storages_.emplace_back(host.unsafeGetStorageImpl(), tensor.storage());
    }
    return keep(make_tensor(host, tensor, c10::DispatchKey::CPU), tensor);
  }

  /// Gives tensors of the device what an operator made of empty ones.
  void take_grown() const;

  /// \return undefined when it has memory of its own
  at::Tensor on_device(const at::Tensor& result) const {
    for (const auto& [host, tensor] : pairs_) {
      if (host.is_same(result)) {
        return tensor;
      }
    }
    for (const auto& [host, storage] : storages_) {
      if (host == result.storage().unsafeGetStorageImpl()) {
        return make_tensor(storage, result, c10::DispatchKey::PrivateUse1);
      }
    }
    return {};
  }

 private:
  // A graph repeats what a number of the host was, and cannot read more of it.
  static at::Tensor as_it_is_now(const at::Tensor& tensor) {
    TORCH_CHECK(tensor.numel() <= 1, "a tensor of the host while a graph is captured");
    const at::Tensor copy = tensor.clone();
    copy.unsafeGetTensorImpl()->set_wrapped_number(
        tensor.unsafeGetTensorImpl()->is_wrapped_number());
    return copy;
  }

  at::Tensor keep(const at::Tensor& alias, const at::Tensor& tensor) {
    pairs_.emplace_back(alias, tensor);
    return alias;
  }

  std::map<c10::StorageImpl*, c10::Storage> hosts_;
  std::vector<std::pair<c10::StorageImpl*, c10::Storage>> storages_;
  std::vector<std::pair<at::Tensor, at::Tensor>> pairs_;
};

using ForTensor = std::function<at::Tensor(const at::Tensor&)>;

/// A value with each of its tensors replaced.
c10::IValue mapped(const c10::IValue& value, const ForTensor& map) {
  if (value.isTensor()) {
    return map(value.toTensor());
  }
  if (value.isTensorList()) {
    c10::List<at::Tensor> list;
    for (const at::Tensor& tensor : value.toTensorVector()) {
      list.push_back(map(tensor));
    }
    return list;
  }
  if (value.isOptionalTensorList()) {
    c10::List<std::optional<at::Tensor>> list;
    for (const std::optional<at::Tensor>& tensor : value.toOptionalTensorVector()) {
      list.push_back(tensor ? std::optional<at::Tensor>(map(*tensor)) : std::nullopt);
    }
    return list;
  }
  return value;
}

torch::jit::Stack host_arguments(const torch::jit::Stack& arguments, Aliases& aliases) {
  torch::jit::Stack host;
  for (const c10::IValue& value : arguments) {
    if (value.isDevice() && value.toDevice().type() == kFake) {
      host.emplace_back(c10::Device(c10::kCPU));
    } else {
      host.push_back(mapped(value, [&](const at::Tensor& t) { return aliases.on_host(t); }));
    }
  }
  return host;
}

void for_each_tensor(const c10::IValue& value, const std::function<void(const at::Tensor&)>& use) {
  mapped(value, [&](const at::Tensor& tensor) {
    use(tensor);
    return tensor;
  });
}

/// Runs an operator on tensors of the CPU, with the random numbers of the device.
void call(const c10::OperatorHandle& op, torch::jit::Stack& stack) {
  if (!op.hasTag(at::Tag::nondeterministic_seeded)) {
    op.callBoxed(&stack);
    return;
  }
  at::Generator of_host = at::detail::getDefaultCPUGenerator();
  const at::Tensor before = of_host.get_state();
  of_host.set_state(generator().get_state());
  op.callBoxed(&stack);
  generator().set_state(of_host.get_state());
  of_host.set_state(before);
}

/// One operator of a graph, with the tensors that it had, by address.
struct Launch {
  c10::OperatorHandle op;
  torch::jit::Stack arguments;
  std::vector<at::Tensor> results;  ///< undefined where nothing is to be copied
};

class FakeGraph final : public DeviceGraph {
 public:
  explicit FakeGraph(std::shared_ptr<Pool> pool) : pool_(std::move(pool)) {}

  void capture(const std::function<void()>& walk) override {
    const at::Tensor random = generator().get_state();
    capturing = this;
    try {
      walk();
    } catch (...) {
      end_capture(random);
      throw;
    }
    end_capture(random);
  }

  void launch() override {
    ++counts.launches;
    const at::AutoDispatchBelowADInplaceOrView below;
    for (const Launch& launch : launches_) {
      torch::jit::Stack stack = launch.arguments;
      call(launch.op, stack);
      size_t next = 0;
      for (const c10::IValue& value : stack) {
        for_each_tensor(value, [&](const at::Tensor& result) {
          if (const at::Tensor& to = launch.results[next++]; to.defined()) {
            std::memcpy(to.data_ptr(), result.storage().data(), to.nbytes());
          }
        });
      }
    }
  }

  /// Before an operator writes: nothing of a capture stays.
  void keep(const at::Tensor& host) {
    const bool is_known = std::any_of(before_.begin(), before_.end(), [&](const auto& kept) {
      return kept.first.data_ptr() == host.storage().data();
    });
    if (!is_known) {
      const at::Tensor all = bytes_of(host);
      before_.emplace_back(all, all.clone());
    }
  }

  void add(Launch launch) { launches_.push_back(std::move(launch)); }

  const std::shared_ptr<Pool>& pool() const { return pool_; }

  static at::Tensor bytes_of(const at::Tensor& host) {
    const c10::Storage& storage = host.storage();
    return at::from_blob(const_cast<void*>(storage.data()),
                         {static_cast<int64_t>(storage.nbytes())},
                         at::TensorOptions(at::kByte));
  }

 private:
  void end_capture(const at::Tensor& random) {
    capturing = nullptr;
    for (const auto& [now, before] : before_) {
      now.copy_(before);
    }
    before_.clear();
    generator().set_state(random);
  }

  std::shared_ptr<Pool> pool_;
  std::vector<Launch> launches_;
  std::vector<std::pair<at::Tensor, at::Tensor>> before_;
};

std::shared_ptr<Pool> pool_of(FakeGraph* graph) {
  return graph->pool();
}

void note_read(const char* what) {
  TORCH_CHECK(capturing == nullptr, what, " while a graph is captured");
  ++counts.reads;
}

/// A tensor of the device with the bytes of one of the CPU.
at::Tensor copied_to_device(const at::Tensor& host) {
  const size_t bytes = host.storage().nbytes();
  c10::Storage storage(c10::Storage::use_byte_size_t(),
                       bytes,
                       c10::GetAllocator(kFake),
                       /*resizable=*/true);
  if (bytes > 0) {
    std::memcpy(storage.mutable_data(), host.storage().data(), bytes);
  }
  return make_tensor(storage, host, c10::DispatchKey::PrivateUse1);
}

void Aliases::take_grown() const {
  for (const auto& [host, tensor] : pairs_) {
    if (tensor.numel() == 0 && host.numel() > 0) {
      const at::Tensor grown = copied_to_device(host);
      tensor.unsafeGetTensorImpl()->set_storage_keep_dtype(grown.storage());
      tensor.unsafeGetTensorImpl()->set_sizes_and_strides(host.sizes(), host.strides());
    }
  }
}

/// Batch norms write the running statistics, of which their schemas say nothing.
bool is_written(const c10::Argument& argument) {
  const auto* const alias = argument.alias_info();
  return (alias != nullptr && alias->isWrite()) || argument.name().rfind("running_", 0) == 0;
}

void run_on_host(const c10::OperatorHandle& op, c10::DispatchKeySet, torch::jit::Stack* stack) {
  const at::AutoDispatchBelowADInplaceOrView below;
  const c10::FunctionSchema& schema = op.schema();
  const torch::jit::Stack arguments = torch::jit::pop(*stack, schema.arguments().size());
  Aliases aliases;
  const torch::jit::Stack host = host_arguments(arguments, aliases);
  if (capturing != nullptr) {
    for (size_t i = 0; i < host.size(); ++i) {
      if (is_written(schema.arguments()[i])) {
        for_each_tensor(host[i], [](const at::Tensor& t) { capturing->keep(t); });
      }
    }
  }
  torch::jit::Stack returned = host;
  call(op, returned);
  aliases.take_grown();
  Aliases as_grown;
  Launch launch{op, host_arguments(arguments, as_grown), {}};
  for (const c10::IValue& value : returned) {
    if (!value.isTensor() && !value.isTensorList()) {
      note_read(schema.name().c_str());
    }
    stack->push_back(mapped(value, [&](const at::Tensor& result) {
      const at::Tensor known = result.defined() ? aliases.on_device(result) : at::Tensor();
      if (!result.defined() || known.defined()) {
        launch.results.emplace_back();
        return known;
      }
      const at::Tensor fresh = copied_to_device(result);
      Aliases of_fresh;
      launch.results.push_back(FakeGraph::bytes_of(of_fresh.on_host(fresh)));
      return fresh;
    }));
  }
  if (capturing != nullptr) {
    capturing->add(std::move(launch));
  }
}

at::Scalar read_number(const at::Tensor& tensor) {
  note_read("item");
  Aliases aliases;
  return aliases.on_host(tensor).item();
}

const c10::OperatorHandle& copy_operator() {
  static const c10::OperatorHandle op =
      c10::Dispatcher::singleton().findSchemaOrThrow("aten::copy_", "");
  return op;
}

at::Tensor copy_from(const at::Tensor& from, const at::Tensor& to, bool /*non_blocking*/) {
  const at::AutoDispatchBelowADInplaceOrView below;
  if (!is_fake(to)) {
    note_read("a copy to the host");
  }
  TORCH_CHECK(is_fake(from) || capturing == nullptr,
              "a copy from the host while a graph is captured");
  Aliases aliases;
  const torch::jit::Stack arguments = {aliases.on_host(to), aliases.on_host(from), false};
  if (capturing != nullptr) {
    capturing->keep(arguments[0].toTensor());
    capturing->add({copy_operator(), arguments, {at::Tensor()}});
  }
  arguments[0].toTensor().copy_(arguments[1].toTensor());
  return to;
}

at::Tensor& set_storage(at::Tensor& tensor,
                        c10::Storage storage,
                        int64_t offset,
                        at::IntArrayRef sizes,
                        at::IntArrayRef strides) {
  tensor.unsafeGetTensorImpl()->set_storage_keep_dtype(std::move(storage));
  tensor.unsafeGetTensorImpl()->set_sizes_and_strides(sizes, strides, offset);
  return tensor;
}

at::Tensor& set_whole_storage(at::Tensor& tensor, c10::Storage storage) {
  const auto count = static_cast<int64_t>(storage.nbytes() / tensor.element_size());
  return set_storage(tensor, std::move(storage), 0, {count}, {1});
}

// --- what LibTorch wants of a device

struct FakeHooks final : at::PrivateUse1HooksInterface {
  const at::Generator& getDefaultGenerator(c10::DeviceIndex) const override { return generator(); }

  bool hasPrimaryContext(c10::DeviceIndex) const override { return true; }

  c10::DeviceIndex deviceCount() const override { return 1; }

  c10::DeviceIndex getCurrentDevice() const override { return 0; }

  c10::DeviceIndex exchangeDevice(c10::DeviceIndex) const override { return 0; }

  c10::DeviceIndex maybeExchangeDevice(c10::DeviceIndex) const override { return 0; }

  void setCurrentDevice(c10::DeviceIndex) const override {}
};

struct FakeGuard final : c10::impl::DeviceGuardImplInterface {
  c10::DeviceType type() const override { return kFake; }

  c10::Device exchangeDevice(c10::Device) const override { return {kFake, 0}; }

  c10::Device getDevice() const override { return {kFake, 0}; }

  void setDevice(c10::Device) const override {}

  void uncheckedSetDevice(c10::Device) const noexcept override {}

  c10::Stream getStream(c10::Device) const noexcept override {
    return c10::Stream(c10::Stream::DEFAULT, c10::Device(kFake, 0));
  }

  c10::Stream getDefaultStream(c10::Device device) const override { return getStream(device); }

  c10::Stream exchangeStream(c10::Stream stream) const noexcept override { return stream; }

  c10::DeviceIndex deviceCount() const noexcept override { return 1; }

  bool queryStream(const c10::Stream&) const override { return true; }

  void synchronizeStream(const c10::Stream&) const override { note_read("a wait"); }

  void record(void**,
              const c10::Stream&,
              const c10::DeviceIndex,
              const c10::EventFlag) const override {}

  void block(void*, const c10::Stream&) const override {}

  bool queryEvent(void*) const override { return true; }
};

class FakeGraphs final : public DeviceGraphs {
 public:
  std::unique_ptr<DeviceGraph> make_graph() override { return std::make_unique<FakeGraph>(pool_); }

  at::Tensor host_bytes(int64_t bytes) override { return at::empty({bytes}, at::kByte); }

 private:
  std::shared_ptr<Pool> pool_ = std::make_shared<Pool>();
};

// LibTorch's modules move their parameters to devices that it knows.
bool can_move(const at::Tensor&, const at::Tensor&) {
  return true;
}

// For as long as the program lives: LibTorch looks them up when it ends, too.
void register_device() {
  c10::register_privateuse1_backend("fake");
  c10::SetAllocator(kFake, new FakeAllocator, /*priority=*/0);
  at::RegisterPrivateUse1HooksInterface(new FakeHooks);
  static const c10::impl::DeviceGuardImplRegistrar guard(kFake, new FakeGuard);
  auto* const fallback = new torch::Library(
      torch::Library::IMPL, "_", c10::DispatchKey::PrivateUse1, __FILE__, __LINE__);
  fallback->fallback(torch::CppFunction::makeFromBoxedFunction<&run_on_host>());
  auto* const autograd = new torch::Library(
      torch::Library::IMPL, "_", c10::DispatchKey::AutogradPrivateUse1, __FILE__, __LINE__);
  autograd->fallback(torch::CppFunction::makeFallthrough());  // where an operator has no gradient
  auto* const aten = new torch::Library(
      torch::Library::IMPL, "aten", c10::DispatchKey::PrivateUse1, __FILE__, __LINE__);
  aten->impl("_local_scalar_dense", &read_number);
  aten->impl("_copy_from", &copy_from);
  aten->impl("set_.source_Storage_storage_offset", &set_storage);
  aten->impl("set_.source_Storage", &set_whole_storage);
  aten->impl("_has_compatible_shallow_copy_type", &can_move);
  // LibTorch's kernel for devices of others gives the losses before their mean.
  aten->impl("mse_loss", torch::CppFunction::makeFromBoxedFunction<&run_on_host>());
  // LibTorch's own kernels of these choose a library by device, and know none for this one.
  for (const char* const name : {"convolution", "convolution_backward"}) {
    aten->impl(name, torch::CppFunction::makeFromBoxedFunction<&run_on_host>());
  }
  register_device_graphs(kFake, [] { return std::make_unique<FakeGraphs>(); });
}

}  // namespace

bool has_fake_device() {
  static std::once_flag once;
  std::call_once(once, &register_device);
  return true;
}

c10::Device fake_device() {
  return {kFake, 0};
}

const FakeDeviceCounts& fake_device_counts() {
  return counts;
}

}  // namespace rondo::test

#else

namespace rondo::test {

bool has_fake_device() {
  return false;
}

c10::Device fake_device() {
  return c10::kCPU;
}

const FakeDeviceCounts& fake_device_counts() {
  static const FakeDeviceCounts none;
  return none;
}

}  // namespace rondo::test

#endif
