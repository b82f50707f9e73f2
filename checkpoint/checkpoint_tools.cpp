#include "checkpoint/checkpoint_tools.h"

#include <ATen/core/Tensor.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <fstream>
#include <memory>
#include <string_view>

#include "checkpoint/checkpoint_file.h"
#include "checkpoint/checkpoint_index.h"
#include "checkpoint/internal/compression.h"
#include "checkpoint/latest_link.h"
#include "checkpoint/safetensors_file.h"
#include "checkpoint/state_layout.h"
#include "core/error.h"
#include "core/low_rank.h"

namespace rondo {

namespace fs = std::filesystem;

namespace {

bool has_safetensors_name(const fs::path& path) {
  return path.extension() == ".safetensors";
}

bool is_list(const StateValue& value) {
  return std::holds_alternative<StateList>(value.variant());
}

/// A list as a dictionary with its numbers for names.
StateDict numbered(const StateList& list) {
  StateDict dict;
  for (size_t i = 0; i < list.size(); ++i) {
    dict.set(std::to_string(i), list[i]);
  }
  return dict;
}

std::string difference_of(const at::Tensor& a, const at::Tensor& b) {
  if (!a.is_floating_point()) {
    return "values differ";
  }
  const at::Tensor gap = a.to(at::kDouble).sub(b.to(at::kDouble)).abs();
  return fmt::format("values differ by {:.3g} at most", gap.max().item<double>());
}

void compare(const StateDict& a,
             const StateDict& b,
             const std::string& path,
             std::vector<std::string>& lines);

void compare(const StateValue& a,
             const StateValue& b,
             const std::string& path,
             std::vector<std::string>& lines) {
  if (a.is_dict() && b.is_dict()) {
    compare(a.as_dict(), b.as_dict(), path, lines);
  } else if (is_list(a) && is_list(b)) {
    compare(numbered(a.as_list()), numbered(b.as_list()), path, lines);
  } else if (a.kind() != b.kind()) {
    lines.push_back(fmt::format("{}: {} and {}", path, a.kind(), b.kind()));
  } else if (!first_difference(StateDict{{"value", a}}, StateDict{{"value", b}}).empty()) {
    lines.push_back(
        fmt::format("{}: {}",
                    path,
                    a.is_tensor() ? difference_of(a.as_tensor(), b.as_tensor()) : "values differ"));
  }
}

void compare(const StateDict& a,
             const StateDict& b,
             const std::string& path,
             std::vector<std::string>& lines) {
  for (const StateDict::Item& item : a.items()) {
    const std::string here = path.empty() ? item.first : path + "/" + item.first;
    if (const StateValue* other = b.find(item.first)) {
      compare(item.second, *other, here, lines);
    } else {
      lines.push_back(here + ": only in the first");
    }
  }
  for (const StateDict::Item& item : b.items()) {
    if (!a.contains(item.first)) {
      lines.push_back((path.empty() ? item.first : path + "/" + item.first) +
                      ": only in the second");
    }
  }
}

bool is_averaged(const at::Tensor& tensor) {
  return tensor.is_floating_point() || tensor.is_complex();
}

/// Adds a model to the sums; floats are summed in float64, complex numbers in complex128, the rest
/// is replaced.
void add_model(StateDict& sums, const StateDict& model) {
  for (const StateDict::Item& item : model.items()) {
    const at::Tensor& tensor = item.second.as_tensor();
    StateValue* sum = sums.find(item.first);
    if (!is_averaged(tensor)) {
      sums.set(item.first, tensor);
    } else if (sum == nullptr) {
      const at::ScalarType wide = tensor.is_complex() ? at::kComplexDouble : at::kDouble;
      sums.set(item.first, tensor.to(wide, /*non_blocking=*/false, /*copy=*/true));
    } else {
      sum->as_tensor().add_(tensor);
    }
  }
}

constexpr std::string_view kB = kLowRankB;

/// \param layer  with its dot, or "" for the model itself
StateValue& adapted_weight(StateDict& model, const std::string& layer) {
  for (const char* name : {"weight", "in_proj_weight"}) {
    if (StateValue* weight = model.find(layer + name)) {
      return *weight;
    }
  }
  throw CheckpointError(
      fmt::format("there are adapters of \"{}weight\" and no such weight: name the file with the "
                  "base's weights too",
                  layer));
}

}  // namespace

void write_any(FileSystem& files, const fs::path& path, const StateDict& state) {
  if (has_safetensors_name(path)) {
    write_safetensors(files, path, module_state(state));
  } else {
    write_checkpoint(files, path, state);
  }
}

const StateDict& module_state(const StateDict& state) {
  const StateValue* model = state.find("model");
  const StateDict& found = model != nullptr && model->is_dict() ? model->as_dict() : state;
  for (const StateDict::Item& item : found.items()) {
    if (!item.second.is_tensor()) {
      throw CheckpointError(
          fmt::format("there is no model: expected tensors by name, but \"{}\" is {}",
                      item.first,
                      item.second.kind()));
    }
  }
  return found;
}

int64_t tensor_bytes(const StateDict& state) {
  int64_t bytes = 0;
  for (const StateDict::Item& item : state.items()) {
    if (item.second.is_tensor()) {
      bytes += static_cast<int64_t>(item.second.as_tensor().nbytes());
    } else if (item.second.is_dict()) {
      bytes += tensor_bytes(item.second.as_dict());
    } else if (is_list(item.second)) {
      bytes += tensor_bytes(numbered(item.second.as_list()));
    }
  }
  return bytes;
}

std::vector<std::string> state_differences(const StateDict& a, const StateDict& b) {
  std::vector<std::string> lines;
  compare(a, b, "", lines);
  return lines;
}

StateDict average_models(const std::vector<fs::path>& paths) {
  StateDict sums;
  StateDict last;
  for (const fs::path& path : paths) {
    StateDict model = module_state(read_checkpoint(path));
    const std::vector<std::string> found = layout_differences(last.empty() ? model : last, model);
    if (!found.empty()) {
      throw CheckpointError(fmt::format(
          "{} does not fit the files before it:\n  {}", path.string(), fmt::join(found, "\n  ")));
    }
    add_model(sums, model);
    last = std::move(model);
  }
  StateDict mean;
  for (const StateDict::Item& item : last.items()) {
    const at::Tensor& sum = sums.at(item.first).as_tensor();
    const at::Tensor& like = item.second.as_tensor();
    mean.set(item.first,
             is_averaged(like) ? sum.div_(static_cast<double>(paths.size())).to(like.scalar_type())
                               : sum);
  }
  return {{"model", std::move(mean)}};
}

StateDict merge_adapters(const StateDict& state, const StateDict& base) {
  const StateDict& trained = module_state(state);
  StateDict merged = base.empty() ? trained : module_state(base);
  for (const StateDict::Item& item : trained.items()) {
    merged.set(item.first, item.second);
  }
  bool has_adapters = false;
  for (const StateDict::Item& item : trained.items()) {
    const size_t layer_end = item.first.size() - std::min(item.first.size(), kB.size());
    if (item.first.substr(layer_end) != kB) {
      continue;
    }
    has_adapters = true;
    const std::string layer = item.first.substr(0, layer_end);
    StateValue& weight = adapted_weight(merged, layer);
    weight = with_low_rank(weight.as_tensor(),
                           merged.at(layer + kLowRankA).as_tensor(),
                           item.second.as_tensor(),
                           merged.at(layer + kLowRankScale).as_tensor());
    for (const char* part : {kLowRankA, kLowRankB, kLowRankScale}) {
      merged.erase(layer + part);
    }
  }
  if (!has_adapters) {
    throw CheckpointError("there are no low-rank adapters: no entry ends with \"lora_B\"");
  }
  return {{"model", std::move(merged)}};
}

void copy_checkpoint(FileSystem& files, const fs::path& from, const fs::path& to) {
  read_checkpoint(from);
  if (has_safetensors_name(from) != has_safetensors_name(to)) {
    throw CheckpointError(
        fmt::format("{} is of another format than the name {} says: convert it "
                    "instead of copying it",
                    from.string(),
                    to.string()));
  }
  std::ifstream file(from, std::ios::binary);
  std::vector<char> block(size_t{1} << 20);
  file.read(block.data(), static_cast<std::streamsize>(block.size()));
  const std::string_view start(block.data(), static_cast<size_t>(file.gcount()));
  if (detail::compression_of_content(start) != detail::compression_of_name(to)) {
    throw CheckpointError(
        fmt::format("{} is not compressed as the name {} says: convert it instead of copying it",
                    from.string(),
                    to.string()));
  }
  write_atomically(files, to, [&](WritableFile& copy) {
    while (file.gcount() > 0) {
      copy.append(block.data(), static_cast<size_t>(file.gcount()));
      file.read(block.data(), static_cast<std::streamsize>(block.size()));
    }
  });
  read_checkpoint(to);
}

void delete_checkpoint(const std::shared_ptr<FileSystem>& files, const fs::path& given) {
  if (fs::is_symlink(given)) {
    throw CheckpointError(fmt::format("{} is a link to {}: name the checkpoint itself",
                                      given.string(),
                                      fs::read_symlink(given).string()));
  }
  const fs::path path = fs::absolute(given);
  CheckpointIndex index(files, path.parent_path(), CheckpointName());
  if (files->exists(index.file())) {
    index.remove(path);
  }
  if (!files->remove(path)) {
    throw CheckpointError(fmt::format("there is no file {}", path.string()));
  }
  const std::vector<fs::path> left = index.listed();
  const fs::path link = path.parent_path() / "latest";
  if (!fs::is_symlink(link)) {
    return;
  }
  if (!left.empty() && files->exists(left.back())) {
    update_latest_link(*files, left.back());
  } else if (!fs::exists(link)) {
    files->remove(link);  // it led to what was deleted
  }
}

}  // namespace rondo
