#include "sweep/operator_families.h"

#include <functional>

#include "sweep/sample_tensors.h"

namespace rondo::test {

namespace {

using Ints = std::vector<int64_t>;
using MakeArguments = std::function<std::vector<NamedArguments>()>;
using Families = std::map<std::string, MakeArguments>;

// What each family shares is written once: rows of arguments, and further arguments for each row.
std::vector<NamedArguments> with(std::vector<NamedArguments> rows, const NamedArguments& more) {
  for (NamedArguments& row : rows) {
    row.insert(more.begin(), more.end());
  }
  return rows;
}

constexpr int64_t kReductions = 3;  // none, mean, sum

at::Tensor gradient_of_loss(at::IntArrayRef sizes, int64_t reduction) {
  return floats(reduction == at::Reduction::None ? sizes : at::IntArrayRef());
}

/// A loss of two tensors of numbers, and its gradient.
std::vector<NamedArguments> pairwise_loss() {
  std::vector<NamedArguments> rows;
  const Ints sizes = {32, 128};
  for (int64_t reduction = 0; reduction < kReductions; ++reduction) {
    rows.push_back({{"self", floats(sizes)},
                    {"target", floats(sizes).flip({0})},
                    {"grad_output", gradient_of_loss(sizes, reduction)},
                    {"reduction", reduction}});
  }
  return rows;
}

/// A loss of scores and labels. \param target  of such a row
std::vector<NamedArguments> label_loss(const at::Tensor& self,
                                       const at::Tensor& target,
                                       at::IntArrayRef unreduced) {
  std::vector<NamedArguments> rows;
  for (int64_t reduction = 0; reduction < kReductions; ++reduction) {
    rows.push_back({{"self", self},
                    {"target", target},
                    {"grad_output", gradient_of_loss(unreduced, reduction)},
                    {"reduction", reduction},
                    {"p", int64_t{1}},
                    {"margin", 1.0},
                    {"ignore_index", int64_t{-100}},
                    {"total_weight", at::full({}, 30.0)},
                    {"is_target", floats(target.sizes())}});
  }
  return rows;
}

void add_losses(Families& families) {
  for (const char* name : {"huber_loss", "mse_loss", "smooth_l1_loss", "binary_cross_entropy"}) {
    families[name] = pairwise_loss;
    families[std::string(name) + "_backward"] = pairwise_loss;
  }
  for (const char* name : {"nll_loss_forward", "nll_loss_backward"}) {
    families[name] = [] { return label_loss(floats({32, 10}), longs({32}, 10), {32}); };
  }
  for (const char* name : {"nll_loss2d_forward", "nll_loss2d_backward"}) {
    families[name] = [] {
      return label_loss(floats({2, 5, 4, 3}), longs({2, 4, 3}, 5), {2, 4, 3});
    };
  }
  for (const char* name : {"multi_margin_loss", "multi_margin_loss_backward"}) {
    families[name] = [] { return label_loss(floats({32, 10}), longs({32}, 10), {32}); };
  }
  for (const char* name : {"multilabel_margin_loss_forward", "multilabel_margin_loss_backward"}) {
    families[name] = [] { return label_loss(floats({32, 10}), longs({32, 10}, 10), {32}); };
  }
}

void add_products(Families& families) {
  const at::Tensor a = floats({4, 6});
  const at::Tensor b = floats({6, 5});
  const at::Tensor many_a = floats({3, 4, 6});
  const at::Tensor many_b = floats({3, 6, 5});
  families["mm"] = [=]() -> std::vector<NamedArguments> {
    return {{{"self", a}, {"mat2", b}},
            {{"self", floats({6, 4}).t()}, {"mat2", b}},
            {{"self", floats({33, 65})}, {"mat2", floats({17, 65}).t()}}};
  };
  families["bmm"] = [=]() -> std::vector<NamedArguments> {
    return {{{"self", many_a}, {"mat2", many_b}},
            {{"self", floats({3, 6, 4}).transpose(1, 2)}, {"mat2", many_b}}};
  };
  for (const char* name : {"addmm", "_addmm_activation"}) {
    families[name] = [=]() -> std::vector<NamedArguments> {
      return {{{"self", floats({4, 5})}, {"mat1", a}, {"mat2", b}},
              {{"self", floats({5})}, {"mat1", a}, {"mat2", b}},
              {{"self", floats({5})}, {"mat1", floats({6, 4}).t()}, {"mat2", b}}};
    };
  }
  families["addmv"] = [=]() -> std::vector<NamedArguments> {
    return {{{"self", floats({4})}, {"mat", a}, {"vec", floats({6})}}};
  };
  families["addr"] = [=]() -> std::vector<NamedArguments> {
    return {{{"self", floats({4, 6})}, {"vec1", floats({4})}, {"vec2", floats({6})}}};
  };
  for (const char* name : {"addbmm", "baddbmm"}) {
    families[name] = [=]() -> std::vector<NamedArguments> {
      return {{{"self", floats({4, 5})}, {"batch1", many_a}, {"batch2", many_b}},
              {{"self", floats({3, 4, 5})}, {"batch1", many_a}, {"batch2", many_b}}};
    };
  }
  families["tensordot"] = [=]() -> std::vector<NamedArguments> {
    return {{{"self", a}, {"other", b}, {"dims_self", Ints{1}}, {"dims_other", Ints{0}}}};
  };
  families["_compute_linear_combination"] = [=]() -> std::vector<NamedArguments> {
    return {{{"input", a}, {"coefficients", floats({3, 4})}}};
  };
}

void add_linear_algebra(Families& families) {
  const at::Tensor matrix = positive_matrix(5);
  const at::Tensor right = floats({5, 2});
  for (const char* name : {"cholesky", "cholesky_inverse", "linalg_cholesky_ex"}) {
    families[name] = [=]() -> std::vector<NamedArguments> {
      return {{{"self", matrix}, {"upper", false}}, {{"self", matrix}, {"upper", true}}};
    };
  }
  families["linalg_householder_product"] = []() -> std::vector<NamedArguments> {
    return {{{"input", floats({5, 3})}, {"tau", floats({3})}}};
  };
  families["ormqr"] = []() -> std::vector<NamedArguments> {
    return {{{"self", floats({5, 3})}, {"input2", floats({3})}, {"input3", floats({5, 4})}}};
  };
  families["linalg_ldl_solve"] = [=]() -> std::vector<NamedArguments> {
    const auto [factor, pivots, info] = at::linalg_ldl_factor_ex(matrix);
    return {{{"LD", factor}, {"pivots", pivots}, {"B", right}}};
  };
  families["linalg_lu_solve"] = [=]() -> std::vector<NamedArguments> {
    const auto [factor, pivots, info] = at::linalg_lu_factor_ex(matrix);
    return {{{"LU", factor}, {"pivots", pivots}, {"B", right}},
            {{"LU", factor}, {"pivots", pivots}, {"B", right}, {"adjoint", true}}};
  };
  families["lu_unpack"] = [=]() -> std::vector<NamedArguments> {
    const auto [factor, pivots, info] = at::linalg_lu_factor_ex(matrix);
    return {{{"LU_data", factor}, {"LU_pivots", pivots}}};
  };
  families["linalg_lstsq"] = []() -> std::vector<NamedArguments> {
    return {{{"self", floats({6, 4})}, {"b", floats({6, 2})}}};
  };
  families["linalg_cross"] = []() -> std::vector<NamedArguments> {
    return {{{"self", floats({4, 3})}, {"other", floats({4, 3}).flip({0})}, {"dim", int64_t{-1}}}};
  };
  families["linalg_solve_triangular"] = [=]() -> std::vector<NamedArguments> {
    return {{{"self", matrix}, {"B", right}, {"upper", false}},
            {{"self", matrix}, {"B", right}, {"upper", true}}};
  };
  families["triangular_solve"] = [=]() -> std::vector<NamedArguments> {
    return {{{"self", right}, {"A", matrix}}};
  };
  families["_linalg_solve_ex"] = [=]() -> std::vector<NamedArguments> {
    return {{{"A", matrix}, {"B", right}}};
  };
}

const NamedArguments& windows(int64_t dimensions) {
  static std::map<int64_t, NamedArguments> all;
  const auto n = static_cast<size_t>(dimensions);
  return all
      .try_emplace(dimensions,
                   NamedArguments{{"kernel_size", Ints(n, 2)},
                                  {"stride", Ints(n, 2)},
                                  {"padding", Ints(n, 0)},
                                  {"dilation", Ints(n, 1)},
                                  {"ceil_mode", false},
                                  {"count_include_pad", true},
                                  {"divisor_override", c10::IValue()}})
      .first->second;
}

void add_pooling(Families& families) {
  const at::Tensor image = floats({2, 3, 8, 6});
  const at::Tensor volume = floats({2, 3, 8, 6, 4});
  const at::Tensor pooled_image = floats({2, 3, 4, 3});
  const at::Tensor pooled_volume = floats({2, 3, 4, 3, 2});
  const auto of_image = [=](const NamedArguments& more) {
    return with({{{"self", image}, {"grad_output", pooled_image}}}, more);
  };
  const auto of_volume = [=](const NamedArguments& more) {
    return with({{{"self", volume}, {"grad_output", pooled_volume}}}, more);
  };
  for (const char* name : {"avg_pool2d", "avg_pool2d_backward", "max_pool2d_with_indices"}) {
    families[name] = [=] { return of_image(windows(2)); };
  }
  for (const char* name : {"avg_pool3d", "avg_pool3d_backward", "max_pool3d_with_indices"}) {
    families[name] = [=] { return of_volume(windows(3)); };
  }
  families["max_pool2d_with_indices_backward"] = [=] {
    const at::Tensor indices = std::get<1>(at::max_pool2d_with_indices(image, 2, 2));
    return with(of_image({{"indices", indices}}), windows(2));
  };
  families["max_pool3d_with_indices_backward"] = [=] {
    const at::Tensor indices = std::get<1>(at::max_pool3d_with_indices(volume, 2, 2));
    return with(of_volume({{"indices", indices}}), windows(3));
  };
  families["adaptive_max_pool2d_backward"] = [=] {
    return of_image({{"indices", std::get<1>(at::adaptive_max_pool2d(image, {4, 3}))}});
  };
  families["adaptive_max_pool3d_backward"] = [=] {
    return of_volume({{"indices", std::get<1>(at::adaptive_max_pool3d(volume, {4, 3, 2}))}});
  };
  const at::Tensor pair = floats({2, 3, 2});
  const at::Tensor triple = floats({2, 3, 3});
  families["fractional_max_pool2d"] = [=] {
    return of_image(
        {{"kernel_size", Ints{2, 2}}, {"output_size", Ints{4, 3}}, {"random_samples", pair}});
  };
  families["fractional_max_pool3d"] = [=] {
    return of_volume({{"kernel_size", Ints{2, 2, 2}},
                      {"output_size", Ints{4, 3, 2}},
                      {"random_samples", triple}});
  };
  families["fractional_max_pool2d_backward"] = [=] {
    const at::Tensor indices = std::get<1>(at::fractional_max_pool2d(image, {2, 2}, {4, 3}, pair));
    return of_image(
        {{"kernel_size", Ints{2, 2}}, {"output_size", Ints{4, 3}}, {"indices", indices}});
  };
  families["fractional_max_pool3d_backward"] = [=] {
    const at::Tensor indices =
        std::get<1>(at::fractional_max_pool3d(volume, {2, 2, 2}, {4, 3, 2}, triple));
    return of_volume(
        {{"kernel_size", Ints{2, 2, 2}}, {"output_size", Ints{4, 3, 2}}, {"indices", indices}});
  };
  families["max_unpool2d"] = [=]() -> std::vector<NamedArguments> {
    const auto [values, indices] = at::max_pool2d_with_indices(image, 2, 2);
    return {{{"self", values}, {"indices", indices}, {"output_size", Ints{8, 6}}}};
  };
  families["max_unpool3d"] = [=]() -> std::vector<NamedArguments> {
    const auto [values, indices] = at::max_pool3d_with_indices(volume, 2, 2);
    return {{{"self", values},
             {"indices", indices},
             {"output_size", Ints{8, 6, 4}},
             {"stride", Ints{2, 2, 2}},
             {"padding", Ints{0, 0, 0}}}};
  };
}

void add_convolutions(Families& families) {
  const NamedArguments pair = {
      {"kernel_size", Ints{2, 2}}, {"stride", Ints{1, 1}}, {"padding", Ints{1, 1}}};
  const NamedArguments triple = {
      {"kernel_size", Ints{2, 2, 2}}, {"stride", Ints{1, 1, 1}}, {"padding", Ints{1, 1, 1}}};
  const at::Tensor image = floats({2, 3, 8, 6});
  const at::Tensor volume = floats({2, 3, 8, 6, 4});
  families["_slow_conv2d_forward"] = [=] {
    return with({{{"self", image}, {"weight", floats({4, 3, 2, 2})}, {"bias", floats({4})}},
                 {{"self", image}, {"weight", floats({4, 3, 2, 2})}}},
                pair);
  };
  families["slow_conv3d_forward"] = [=] {
    return with({{{"self", volume}, {"weight", floats({4, 3, 2, 2, 2})}, {"bias", floats({4})}}},
                triple);
  };
  families["slow_conv_transpose2d"] = [=] {
    return with({{{"self", image}, {"weight", floats({3, 4, 2, 2})}, {"bias", floats({4})}}}, pair);
  };
  families["slow_conv_transpose3d"] = [=] {
    return with({{{"self", volume}, {"weight", floats({3, 4, 2, 2, 2})}, {"bias", floats({4})}}},
                triple);
  };
  const NamedArguments patches = {{"kernel_size", Ints{2, 2}},
                                  {"dilation", Ints{1, 1}},
                                  {"padding", Ints{0, 0}},
                                  {"stride", Ints{1, 1}}};
  families["im2col"] = [=] { return with({{{"self", image}}}, patches); };
  families["col2im"] = [=] {
    return with({{{"self", floats({2, 12, 35})}, {"output_size", Ints{8, 6}}}}, patches);
  };
}

/// Both directions of enlarging images whose last sizes are so many.
std::vector<NamedArguments> upsampled(size_t dimensions) {
  Ints small = {2, 3};
  Ints large = {2, 3};
  small.insert(small.end(), dimensions, 3);
  large.insert(large.end(), dimensions, 5);
  const Ints size(dimensions, 5);
  std::vector<NamedArguments> rows;
  for (const bool align_corners : {false, true}) {
    rows.push_back({{"self", floats(small)},
                    {"grad_output", floats(large)},
                    {"output_size", size},
                    {"input_size", small},
                    {"align_corners", align_corners}});
  }
  return rows;
}

void add_upsampling(Families& families) {
  const std::map<size_t, std::vector<std::string>> names = {
      {1, {"upsample_nearest1d", "_upsample_nearest_exact1d", "upsample_linear1d"}},
      {2,
       {"upsample_nearest2d",
        "_upsample_nearest_exact2d",
        "upsample_bilinear2d",
        "upsample_bicubic2d",
        "_upsample_bilinear2d_aa",
        "_upsample_bicubic2d_aa"}},
      {3, {"upsample_nearest3d", "_upsample_nearest_exact3d", "upsample_trilinear3d"}}};
  for (const auto& [dimensions, of] : names) {
    for (const std::string& name : of) {
      families[name] = [n = dimensions] { return upsampled(n); };
      families[name + "_backward"] = [n = dimensions] { return upsampled(n); };
    }
  }
}

void add_padding(Families& families) {
  for (const char* kind : {"reflection", "replication"}) {
    for (size_t n = 1; n <= 3; ++n) {
      const auto make = [n]() -> std::vector<NamedArguments> {
        Ints sizes = {2, 3};
        Ints padded = {2, 3};
        sizes.insert(sizes.end(), n, 4);
        padded.insert(padded.end(), n, 7);
        Ints padding;
        for (size_t i = 0; i < n; ++i) {
          padding.insert(padding.end(), {1, 2});
        }
        return {{{"self", floats(sizes)}, {"grad_output", floats(padded)}, {"padding", padding}}};
      };
      const std::string name = std::string(kind) + "_pad" + std::to_string(n) + "d";
      families[name] = make;
      families[name + "_backward"] = make;
    }
  }
}

void add_transforms(Families& families) {
  families["_fft_c2c"] = []() -> std::vector<NamedArguments> {
    return {{{"self", complexes({4, 6})}, {"dim", Ints{1}}, {"forward", true}},
            {{"self", complexes({4, 6})}, {"dim", Ints{0, 1}}, {"forward", false}}};
  };
  families["_fft_r2c"] = []() -> std::vector<NamedArguments> {
    return {{{"self", floats({4, 6})}, {"dim", Ints{1}}, {"onesided", true}},
            {{"self", floats({4, 6})}, {"dim", Ints{0, 1}}, {"onesided", false}}};
  };
  families["_fft_c2r"] = []() -> std::vector<NamedArguments> {
    return {{{"self", complexes({4, 4})}, {"dim", Ints{1}}, {"last_dim_size", int64_t{6}}}};
  };
}

void add_indexing(Families& families) {
  const at::Tensor table = floats({4, 6});
  const NamedArguments columns = {
      {"self", table}, {"dim", int64_t{1}}, {"index", longs({4, 3}, 6)}, {"src", floats({4, 6})}};
  const NamedArguments rows = {
      {"self", table}, {"dim", int64_t{0}}, {"index", longs({3}, 4)}, {"source", floats({3, 6})}};
  families["gather"] = [=] { return std::vector{columns}; };
  families["scatter_add"] = [=] { return std::vector{columns}; };
  families["scatter_reduce"] = [=] { return with({columns}, {{"reduce", "sum"}}); };
  families["scatter"] = [=] { return with({columns}, {{"reduce", "add"}}); };
  families["index_add"] = [=] { return std::vector{rows}; };
  families["index_copy"] = [=] { return std::vector{rows}; };
  families["index_select"] = [=] { return std::vector{rows}; };
  families["index_reduce"] = [=] { return with({rows}, {{"reduce", "prod"}}); };
  families["take"] = [=]() -> std::vector<NamedArguments> {
    return {{{"self", table}, {"index", longs({5}, 24)}}};
  };
  families["index"] = [=]() -> std::vector<NamedArguments> {
    c10::List<c10::optional<at::Tensor>> indices;
    indices.push_back(longs({3}, 4));
    return {{{"self", table}, {"indices", indices}}};
  };
  families["where"] = [=]() -> std::vector<NamedArguments> {
    return {{{"condition", table.gt(0.5)}, {"self", table}, {"other", floats({4, 6}).neg()}}};
  };
  const at::Tensor sorted = at::arange(8, at::kFloat).div(8);
  families["bucketize"] = [=]() -> std::vector<NamedArguments> {
    return {{{"self", table}, {"boundaries", sorted}}};
  };
  families["searchsorted"] = [=]() -> std::vector<NamedArguments> {
    return {{{"sorted_sequence", sorted}, {"self", table}}};
  };
  families["histogram"] = [=]() -> std::vector<NamedArguments> {
    return {{{"self", table}, {"bins", sorted}}, {{"self", table}, {"bins", int64_t{5}}}};
  };
  families["_convert_indices_from_coo_to_csr"] = []() -> std::vector<NamedArguments> {
    return {{{"self", at::arange(5, at::kLong)}, {"size", int64_t{8}}}};
  };
  families["_convert_indices_from_csr_to_coo"] = []() -> std::vector<NamedArguments> {
    return {{{"crow_indices", at::arange(5, at::kLong)}, {"col_indices", longs({4}, 3)}}};
  };
}

void add_others(Families& families) {
  families["mvlgamma"] = []() -> std::vector<NamedArguments> {
    return {{{"self", floats({4, 6}).add(2)}, {"p", int64_t{2}}}};
  };
  families["polygamma"] = []() -> std::vector<NamedArguments> {
    return {{{"n", int64_t{0}}}, {{"n", int64_t{1}}}, {{"n", int64_t{3}}}};
  };
  families["div"] = []() -> std::vector<NamedArguments> {
    return {{{"rounding_mode", "floor"}}, {{"rounding_mode", "trunc"}}};
  };
  families["clamp"] = []() -> std::vector<NamedArguments> {
    const at::Tensor least = floats({4, 6}).neg();
    return {{{"min", 0.3}, {"max", 0.7}}, {{"min", least}, {"max", floats({4, 6})}}};
  };
  families["sort"] = []() -> std::vector<NamedArguments> {
    return {{{"stable", true}}, {{"stable", false}, {"descending", true}}};
  };
  families["logical_not"] = []() -> std::vector<NamedArguments> {
    return {{{"self", floats({4, 6}).gt(0.5)}}};
  };
}

const Families& all_families() {
  static const Families all = [] {
    Families families;
    add_losses(families);
    add_products(families);
    add_linear_algebra(families);
    add_pooling(families);
    add_convolutions(families);
    add_upsampling(families);
    add_padding(families);
    add_transforms(families);
    add_indexing(families);
    add_others(families);
    return families;
  }();
  return all;
}

}  // namespace

std::vector<NamedArguments> family_arguments(const std::string& op) {
  const std::string name = op.substr(op.find("::") + 2);
  const auto family = all_families().find(name);
  return family == all_families().end() ? std::vector<NamedArguments>() : family->second();
}

}  // namespace rondo::test
