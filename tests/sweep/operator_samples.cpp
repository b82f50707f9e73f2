#include "sweep/operator_samples.h"

#include <functional>
#include <optional>
#include <string>

#include "sweep/operator_families.h"
#include "sweep/sample_tensors.h"

namespace rondo::test {

namespace {

/// What the tensors of a guess are.
struct Guess {
  std::function<at::Tensor()> tensor;
  c10::Scalar number = 0.5;
};

const std::vector<Guess>& guesses() {
  const auto of_floats = [](std::vector<int64_t> sizes) {
    return [sizes = std::move(sizes)] { return floats(sizes); };
  };
  static const std::vector<Guess> all = {
      {of_floats({4, 6})},
      {[] {
        return floats({6, 4}).t();
      }},
      {[] {
        return floats({4, 12}).slice(1, 0, 12, 2);
      }},
      {of_floats({})},
      {of_floats({7})},
      {of_floats({33, 65})},
      {of_floats({0, 6})},
      {of_floats({2, 3, 8})},
      {of_floats({2, 3, 8, 8})},
      {[] {
        return floats({2, 3, 8, 8}).contiguous(at::MemoryFormat::ChannelsLast);
      }},
      {of_floats({1, 2, 4, 6, 6})},
      {[] { return positive_matrix(5); }},
      {[] {
        return floats({4, 6}, at::kDouble);
      }},
      {[] {
         return longs({4, 6}, 5).add(1);
       },
       2},
      {[] {
         return floats({4, 6}).gt(0.5);
       },
       1},
      {[] {
        return complexes({5, 5});
      }},
  };
  return all;
}

bool ends_with(const std::string& text, const std::string& end) {
  return text.size() >= end.size() && text.compare(text.size() - end.size(), end.size(), end) == 0;
}

int64_t guess_int(const std::string& name) {
  const std::map<std::string, int64_t> known = {{"dim", 0},
                                                {"normalization", 0},
                                                {"ignore_index", -100},
                                                {"start", 1},
                                                {"length", 2},
                                                {"k", 2},
                                                {"p", 2},
                                                {"size", 8},
                                                {"dtype", static_cast<int64_t>(at::kFloat)}};
  const auto found = known.find(ends_with(name, "dtype") ? "dtype" : name);
  return found == known.end() ? 1 : found->second;
}

std::vector<int64_t> guess_ints(const c10::Argument& argument) {
  const std::map<std::string, int64_t> known = {
      {"kernel_size", 2}, {"output_size", 3}, {"padding", 1}, {"stride", 1}, {"dilation", 1}};
  const auto found = known.find(argument.name());
  const int64_t value = found == known.end() ? 0 : found->second;
  return std::vector<int64_t>(static_cast<size_t>(argument.N().value_or(1)), value);
}

/// None when nothing can be made for the type.
std::optional<c10::IValue> guess_value(const c10::Argument& argument, const Guess& guess) {
  if (argument.default_value()) {
    return *argument.default_value();
  }
  switch (argument.type()->kind()) {
    case c10::TypeKind::TensorType:
      return guess.tensor();
    case c10::TypeKind::OptionalType:
      return c10::IValue();
    case c10::TypeKind::NumberType:
      return guess.number;
    case c10::TypeKind::FloatType:
      return 0.5;
    case c10::TypeKind::BoolType:
      return false;
    case c10::TypeKind::IntType:
    case c10::TypeKind::SymIntType:
      return guess_int(argument.name());
    case c10::TypeKind::StringType:
      return "sum";
    case c10::TypeKind::ListType:
      break;
    default:
      return std::nullopt;
  }
  switch (argument.type()->containedType(0)->kind()) {
    case c10::TypeKind::TensorType:
      return c10::List<at::Tensor>({guess.tensor(), guess.tensor()});
    case c10::TypeKind::IntType:
    case c10::TypeKind::SymIntType:
      return guess_ints(argument);
    default:
      return std::nullopt;
  }
}

/// \param given  arguments that are not guessed
std::optional<SampleArguments> arguments_of(const c10::FunctionSchema& schema,
                                            const Guess& guess,
                                            const NamedArguments& given) {
  SampleArguments arguments;
  for (const c10::Argument& argument : schema.arguments()) {
    const auto found = given.find(argument.name());
    const std::optional<c10::IValue> value = found == given.end()
                                                 ? guess_value(argument, guess)
                                                 : std::optional<c10::IValue>(found->second);
    if (!value) {
      return std::nullopt;
    }
    arguments.push_back(*value);
  }
  return arguments;
}

}  // namespace

std::vector<SampleArguments> sample_arguments(const c10::FunctionSchema& schema) {
  std::vector<SampleArguments> samples;
  const auto add = [&](const Guess& guess, const NamedArguments& given) {
    if (auto arguments = arguments_of(schema, guess, given)) {
      samples.push_back(std::move(*arguments));
    }
  };
  for (const NamedArguments& given : family_arguments(schema.name())) {
    add(guesses().front(), given);
  }
  for (const Guess& guess : guesses()) {
    add(guess, {});
  }
  return samples;
}

}  // namespace rondo::test
