#include "loops/failed_batch.h"

#include <ATen/core/Tensor.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <exception>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "core/error.h"
#include "loops/backward_error.h"
#include "loops/refused_index.h"
#include "models/forward_error.h"
#include "trainer/trainer.h"

namespace rondo {

namespace {

/// Subscripts of an element: "3, 5".
std::string subscripts(const at::Tensor& tensor, int64_t position) {
  std::vector<int64_t> place;
  for (int64_t i = tensor.dim() - 1; i >= 0; --i) {
    place.push_back(position % tensor.size(i));
    position /= tensor.size(i);
  }
  std::reverse(place.begin(), place.end());
  return fmt::format("{}", fmt::join(place, ", "));
}

/// "sample 37 of the data set", by its number there where it has one.
std::string sample_text(const BatchPlace& place, int64_t row, uint64_t seed) {
  const LoaderPosition position{place.first.epoch, place.first.sample + row};
  const std::optional<int64_t> number = place.loader.number_of(position, seed);
  return number ? fmt::format("sample {} of the data set", *number)
                : fmt::format("sample {} of the pass", position.sample);
}

std::string place_text(Trainer& trainer, const Batch& batch, const BatchPlace& place) {
  const std::string epoch =
      trainer.state().is_training ? fmt::format(" of epoch {}", place.first.epoch) : "";
  return fmt::format("; the batch holds the samples {} to {}{} of {}",
                     place.first.sample,
                     place.first.sample + batch.size() - 1,
                     epoch,
                     place.loader.name());
}

std::string element_text(Trainer& trainer,
                         const std::string& complaint,
                         const Batch& batch,
                         const BatchPlace& place) {
  const auto refused = refused_index(complaint, batch, trainer.state().model->module());
  if (!refused) {
    return "";
  }
  const at::Tensor& tensor = batch[refused->tensor];
  std::string text = fmt::format(
      "; \"{}\"[{}] is {}", refused->tensor, subscripts(tensor, refused->position), refused->value);
  if (tensor.dim() > 0 && tensor.size(0) == batch.size()) {
    const int64_t row = refused->position / (tensor.numel() / tensor.size(0));
    text += " (" + sample_text(place, row, trainer.state().seed) + ")";
  }
  return text + (refused->limit.empty() ? "" : ", and " + refused->limit);
}

/// Within a handler of `error`: the same, with the same cause, saying more.
template <class SomeError>
[[noreturn]] void rethrow_with(const SomeError& error, const std::function<std::string()>& more) {
  const auto* nested = dynamic_cast<const std::nested_exception*>(&error);
  if (nested == nullptr) {
    throw;
  }
  const SomeError longer(error.what() + more());
  try {
    nested->rethrow_nested();
  } catch (...) {
    std::throw_with_nested(longer);
  }
}

}  // namespace

void rethrow_with_place(Trainer& trainer, const Batch& batch, const BatchPlace& place) {
  const std::exception_ptr whole = std::current_exception();
  const auto more = [&] {
    return place_text(trainer, batch, place) + element_text(trainer, describe(whole), batch, place);
  };
  try {
    throw;
  } catch (const ForwardError& error) {
    rethrow_with(error, more);
  } catch (const BackwardError& error) {
    rethrow_with(error, more);
  } catch (const CaptureError& error) {  // of a replay, which knows operators and no model
    rethrow_with(error, [&] {
      return fmt::format("; {} was given {}", trainer.options().model.name(), to_text(batch)) +
             more();
    });
  }
}

}  // namespace rondo
