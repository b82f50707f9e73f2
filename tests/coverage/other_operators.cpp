#include <torch/autograd.h>
#include <torch/fft.h>
#include <torch/special.h>
#include <torch/types.h>
#include <torch/utils.h>
#include <torch/version.h>

#include "coverage/row.h"

// Operators that move elements, index, multiply matrices, solve and transform.

namespace rondo::test {

namespace {

using at::Tensor;

const Sizes kSquare{5, 5};
const Sizes kBatch{3, 4, 4};

Tensor positive_definite(const Tensor& x) {
  return x.matmul(x.transpose(-2, -1)) + at::eye(x.size(-1)) * 3;
}

void add_shapes(Rows& rows) {
  rows.function("torch::cat", kMatrix, [](const Inputs& in) { return at::cat({in.x, in.y}, 1); });
  rows.function("torch::stack", kMatrix, [](const Inputs& in) { return at::stack({in.x, in.y}); });
  rows.function("torch::chunk", kMatrix, [](const Tensor& x) {
    const auto parts = at::chunk(x, 2, 1);
    return parts[0] * parts[1];
  });
  rows.function("torch::split", kMatrix, [](const Tensor& x) {
    const auto parts = at::split(x, 3, 0);
    return parts[0] * parts[1];
  });
  rows.function("torch::unbind", kMatrix, [](const Tensor& x) {
    const auto parts = at::unbind(x);
    return parts[0] * parts[3];
  });
  rows.function("torch::tensor_split", kMatrix, [](const Tensor& x) {
    return at::tensor_split(x, at::IntArrayRef({2, 5}), 0)[1];
  });
  rows.function("torch::tensor_split, by a tensor", kMatrix, [](const Inputs& in) {
    return at::tensor_split(in.x, in.label.slice(0, 0, 1) + 1, 0)[0];
  });
  rows.function("torch::flip", kMatrix, [](const Tensor& x) { return at::flip(x, {0, 1}) * x; });
  rows.function("torch::roll", kMatrix, [](const Tensor& x) { return at::roll(x, 2, 1) * x; });
  rows.function("torch::rot90", kMatrix, [](const Tensor& x) { return at::rot90(x); });
  rows.function("torch::repeat_interleave", kMatrix, [](const Tensor& x) {
    return at::repeat_interleave(x, 2, 0);
  });
  rows.function("torch::repeat_interleave, by a tensor", kMatrix, [](const Inputs& in) {
    return at::repeat_interleave(in.x, in.label, 0);
  });
  rows.function("torch::tile", kMatrix, [](const Tensor& x) { return at::tile(x, {2, 2}); });
  rows.function("Tensor::repeat", kMatrix, [](const Tensor& x) { return x.repeat({2, 1, 2}); });
  rows.function("Tensor::expand", kMatrix, [](const Tensor& x) {
    return x.unsqueeze(0).expand({3, 8, 6}).square();
  });
  rows.function("Tensor::permute", kBatch, [](const Tensor& x) {
    return x.permute({2, 0, 1}).contiguous() * 2;
  });
  rows.function("Tensor::unfold", kMatrix, [](const Tensor& x) { return x.unfold(1, 3, 2); });
  rows.function("Tensor::as_strided", kMatrix, [](const Tensor& x) {
    return x.as_strided({4, 3}, {7, 2}, 1);
  });
  rows.function("Tensor::squeeze_", kMatrix, [](const Tensor& x) {
    return (x.unsqueeze(0) * 2).squeeze_(0);
  });
  rows.function("torch::diagonal", kSquare, [](const Tensor& x) { return at::diagonal(x); });
  rows.function("torch::diag_embed", kMatrix, [](const Tensor& x) { return at::diag_embed(x); });
  rows.function("torch::tril", kSquare, [](const Tensor& x) { return at::tril(x); });
  rows.function("torch::triu", kSquare, [](const Tensor& x) { return at::triu(x, 1); });
  rows.function("torch::meshgrid", {6}, [](const Inputs& in) {
    const auto grids = at::meshgrid({in.x, in.y}, "ij");
    return grids[0] * grids[1];
  });
  rows.function("torch::cartesian_prod", {6}, [](const Inputs& in) {
    return at::cartesian_prod({in.x, in.y});
  });
  rows.function("torch::block_diag", kSquare, [](const Inputs& in) {
    return at::block_diag({in.x, in.y});
  });
  rows.function("torch::movedim", kBatch, [](const Tensor& x) { return at::movedim(x, 0, 2); });
  rows.function("torch::broadcast_tensors", kMatrix, [](const Tensor& x) {
    return at::broadcast_tensors({x, x[0]})[1] * x;
  });
  rows.function("torch::combinations", {6}, [](const Tensor& x) { return at::combinations(x); });
  rows.function("torch::vander", {6}, [](const Inputs& in) {
    return at::vander(in.y, 3) * in.x.unsqueeze(1);
  });
}

void add_indexing(Rows& rows) {
  rows.function(
      "torch::gather", kMatrix, [](const Inputs& in) { return at::gather(in.x, 1, in.index); });
  rows.function("torch::scatter", kMatrix, [](const Inputs& in) {
    return at::scatter(in.y, 1, in.index % 1, in.x);
  });
  rows.function("torch::scatter_add", kMatrix, [](const Inputs& in) {
    return at::scatter_add(in.y, 1, in.index, in.x);
  });
  rows.function("torch::scatter_reduce, amax", kMatrix, [](const Inputs& in) {
    return at::scatter_reduce(in.y, 1, in.index, in.x, "amax");
  });
  rows.function("torch::scatter_reduce, prod", kMatrix, [](const Inputs& in) {
    return at::scatter_reduce(in.y, 1, in.index, in.x, "prod");
  });
  rows.function("torch::scatter_reduce, mean", kMatrix, [](const Inputs& in) {
    return at::scatter_reduce(in.y, 1, in.index, in.x, "mean");
  });
  rows.function("torch::index_select", kMatrix, [](const Inputs& in) {
    return at::index_select(in.x, 0, in.label);
  });
  rows.function("torch::index_add", kMatrix, [](const Inputs& in) {
    return at::index_add(in.y, 0, in.label, in.x, 0.5);
  });
  rows.function("torch::index_copy", kMatrix, [](const Inputs& in) {
    return at::index_copy(in.y, 0, at::arange(8).flip(0), in.x);
  });
  rows.function("torch::index_fill", kMatrix, [](const Inputs& in) {
    return at::index_fill(in.x, 0, in.label, 0.5);
  });
  rows.function("torch::index_reduce", kMatrix, [](const Inputs& in) {
    return at::index_reduce(in.y, 0, in.label, in.x, "amax");
  });
  rows.function("torch::index_put", kMatrix, [](const Inputs& in) {
    return at::index_put(in.y, {in.label}, in.x, /*accumulate=*/true);
  });
  rows.function("Tensor::index, integers", kMatrix, [](const Inputs& in) {
    return in.x.index({in.label, in.label});
  });
  rows.function(
      "Tensor::index, mask", kMatrix, [](const Inputs& in) { return in.x.index({in.y > 0}); });
  rows.function("Tensor::index, constant mask", kMatrix, [](const Tensor& x) {
    return x.index({at::arange(8) > 2});
  });
  rows.function("torch::masked_fill", kMatrix, [](const Inputs& in) {
    return at::masked_fill(in.x, in.y > 0, 0.5);
  });
  rows.function("torch::masked_scatter", kMatrix, [](const Inputs& in) {
    return at::masked_scatter(in.y, in.y > 0, in.x);
  });
  rows.function("torch::masked_select", kMatrix, [](const Inputs& in) {
    return at::masked_select(in.x, in.y > 0);
  });
  rows.function("torch::take", kMatrix, [](const Inputs& in) { return at::take(in.x, in.index); });
  rows.function("torch::take_along_dim", kMatrix, [](const Inputs& in) {
    return at::take_along_dim(in.x, in.index, 1);
  });
  rows.function("Tensor::put_", kMatrix, [](const Inputs& in) {
    return in.y.clone().put_(at::arange(48).view({8, 6}), in.x);
  });
  rows.function("torch::narrow", kMatrix, [](const Tensor& x) { return at::narrow(x, 1, 1, 3); });
  rows.function("torch::select_scatter", kMatrix, [](const Inputs& in) {
    return at::select_scatter(in.x, in.y[0], 0, 2);
  });
  rows.function("torch::slice_scatter", kMatrix, [](const Inputs& in) {
    return at::slice_scatter(in.x, in.y.slice(0, 0, 3), 0, 1, 4);
  });
  rows.function("torch::nonzero", kMatrix, [](const Inputs& in) {
    return at::nonzero(in.y > 0).to(at::kFloat).mean() * in.x;
  });
  rows.function("torch::unique", kMatrix, [](const Inputs& in) {
    return std::get<0>(at::_unique(in.index)).to(at::kFloat).sum() * in.x;
  });
  rows.function("torch::bincount", {8}, [](const Inputs& in) {
    return at::bincount(in.index, {}, 8).to(at::kFloat) * in.x;
  });
  rows.function(
      "torch::histc", kMatrix, [](const Inputs& in) { return at::histc(in.y, 6, -3, 3) * in.x; });
  rows.function("torch::bucketize", kMatrix, [](const Inputs& in) {
    return at::bucketize(in.y, at::linspace(-2, 2, 5)).to(at::kFloat) * in.x;
  });
  rows.function("torch::searchsorted", kMatrix, [](const Inputs& in) {
    return at::searchsorted(at::linspace(-2, 2, 5), in.y).to(at::kFloat) * in.x;
  });
  rows.function(
      "torch::embedding", kMatrix, [](const Inputs& in) { return at::embedding(in.x, in.label); });
  rows.function("torch::segment_reduce", kMatrix, [](const Tensor& x) {
    return at::segment_reduce(x, "sum", at::tensor(at::ArrayRef<int64_t>({3, 1, 4})));
  });
}

void add_sorting(Rows& rows) {
  rows.function(
      "torch::sort", kMatrix, [](const Tensor& x) { return std::get<0>(at::sort(x, 1)); });
  rows.function("torch::argsort", kMatrix, [](const Tensor& x) {
    return x.gather(1, at::argsort(x, 1, /*descending=*/true));
  });
  rows.function(
      "torch::topk", kMatrix, [](const Tensor& x) { return std::get<0>(at::topk(x, 3, 1)); });
  rows.function("torch::msort", kMatrix, [](const Tensor& x) { return at::msort(x); });
}

void add_products(Rows& rows) {
  rows.function("torch::einsum", kBatch, [](const Inputs& in) {
    return at::einsum("bij,bjk->bik", {in.x, in.y});
  });
  rows.function(
      "torch::einsum, trace", kBatch, [](const Tensor& x) { return at::einsum("bii->b", {x}); });
  rows.function(
      "torch::matmul", kBatch, [](const Inputs& in) { return at::matmul(in.x, in.y[0]); });
  rows.function("torch::mm", kMatrix, [](const Inputs& in) { return at::mm(in.x, in.y.t()); });
  rows.function("torch::mv", kMatrix, [](const Inputs& in) { return at::mv(in.x, in.y[0]); });
  rows.function("torch::bmm", kBatch, [](const Inputs& in) { return at::bmm(in.x, in.y); });
  rows.function("torch::baddbmm", kBatch, [](const Inputs& in) {
    return at::baddbmm(in.y, in.x, in.y, 0.5, 2);
  });
  rows.function(
      "torch::addbmm", kBatch, [](const Inputs& in) { return at::addbmm(in.y[0], in.x, in.y); });
  rows.function("torch::addmm", kSquare, [](const Inputs& in) {
    return at::addmm(in.y, in.x, in.y, 0.5, 2);
  });
  rows.function(
      "torch::addmv", kSquare, [](const Inputs& in) { return at::addmv(in.y[0], in.x, in.y[1]); });
  rows.function(
      "torch::addr", kSquare, [](const Inputs& in) { return at::addr(in.y, in.x[0], in.x[1]); });
  rows.function("torch::dot", {6}, [](const Inputs& in) { return at::dot(in.x, in.y); });
  rows.function("torch::outer", {6}, [](const Inputs& in) { return at::outer(in.x, in.y); });
  rows.function("torch::kron", kSquare, [](const Inputs& in) { return at::kron(in.x, in.y); });
  rows.function("torch::tensordot", kBatch, [](const Inputs& in) {
    return at::tensordot(in.x, in.y, {1}, {2});
  });
  rows.function("torch::cdist", kMatrix, [](const Inputs& in) { return at::cdist(in.x, in.y); });
  rows.function(
      "torch::cross", {4, 3}, [](const Inputs& in) { return at::linalg_cross(in.x, in.y); });
  rows.function(
      "torch::matrix_power", kSquare, [](const Tensor& x) { return at::matrix_power(x, 3); });
  rows.function("torch::chain_matmul", kSquare, [](const Inputs& in) {
    return at::linalg_multi_dot({in.x, in.y, in.x});
  });
#if TORCH_VERSION_MAJOR >= 2
  rows.function("torch::scaled_dot_product_attention", {2, 2, 5, 4}, [](const Inputs& in) {
    return at::scaled_dot_product_attention(in.x, in.x, in.y, {}, 0.0, /*is_causal=*/true);
  });
#endif
}

void add_linear_algebra(Rows& rows) {
  rows.function("linalg::solve", kSquare, [](const Inputs& in) {
    return at::linalg_solve(positive_definite(in.x), in.y);
  });
  rows.function(
      "linalg::inv", kSquare, [](const Tensor& x) { return at::linalg_inv(positive_definite(x)); });
  rows.function("linalg::pinv", kSquare, [](const Tensor& x) {
    return at::linalg_pinv(positive_definite(x));
  });
  rows.function("linalg::cholesky", kBatch, [](const Tensor& x) {
    return at::linalg_cholesky(positive_definite(x));
  });
  rows.function("torch::cholesky_solve", kSquare, [](const Inputs& in) {
    return at::cholesky_solve(in.y, at::linalg_cholesky(positive_definite(in.x)));
  });
  rows.function("linalg::solve_triangular", kSquare, [](const Inputs& in) {
    return at::linalg_solve_triangular(at::tril(in.x) + at::eye(5) * 3, in.y, /*upper=*/false);
  });
  rows.function("linalg::lstsq", kSquare, [](const Inputs& in) {
    return std::get<0>(at::linalg_lstsq(positive_definite(in.x), in.y));
  });
  rows.is_left_to_chance();
  rows.function("linalg::lstsq, gelsd", kSquare, [](const Inputs& in) {
    return std::get<0>(
        at::linalg_lstsq(positive_definite(in.x), in.y, c10::nullopt, c10::string_view("gelsd")));
  });
  rows.function(
      "linalg::qr", kMatrix, [](const Tensor& x) { return std::get<1>(at::linalg_qr(x)); });
  rows.function("linalg::svd", kMatrix, [](const Tensor& x) {
    return std::get<1>(at::linalg_svd(x, /*full_matrices=*/false));
  });
  rows.function("linalg::svdvals", kMatrix, [](const Tensor& x) { return at::linalg_svdvals(x); });
  rows.function("linalg::eigh", kSquare, [](const Tensor& x) {
    return std::get<0>(at::linalg_eigh(positive_definite(x)));
  });
  rows.function("linalg::eigvals", kSquare, [](const Tensor& x) {
    return at::linalg_eigvals(positive_definite(x));
  });
  rows.function("linalg::det", kSquare, [](const Tensor& x) { return at::linalg_det(x); });
  rows.function("linalg::slogdet", kSquare, [](const Tensor& x) {
    return std::get<1>(at::linalg_slogdet(positive_definite(x)));
  });
  rows.function("linalg::lu", kSquare, [](const Tensor& x) {
    return std::get<2>(at::linalg_lu(positive_definite(x)));
  });
  rows.function("linalg::norm", kMatrix, [](const Tensor& x) { return at::linalg_norm(x); });
  rows.function(
      "linalg::norm, nuclear", kMatrix, [](const Tensor& x) { return at::linalg_norm(x, "nuc"); });
  rows.function(
      "linalg::vector_norm", kMatrix, [](const Tensor& x) { return at::linalg_vector_norm(x, 3); });
  rows.function("linalg::matrix_exp", kSquare, [](const Tensor& x) {
    return at::linalg_matrix_exp(x * 0.1);
  });
  rows.function("linalg::matrix_rank", kSquare, [](const Tensor& x) {
    return at::linalg_matrix_rank(x, c10::optional<double>(), c10::optional<double>());
  });
  rows.function("linalg::cond", kSquare, [](const Tensor& x) {
    return at::linalg_cond(positive_definite(x));
  });
}

void add_transforms(Rows& rows) {
  rows.function("fft::fft", kMatrix, [](const Tensor& x) { return at::fft_fft(x); });
  rows.function("fft::rfft, irfft", kMatrix, [](const Tensor& x) {
    return at::fft_irfft(at::fft_rfft(x) * 0.5);
  });
  rows.function("fft::fft2", kMatrix, [](const Tensor& x) { return at::fft_fft2(x); });
  rows.function("fft::rfftn, irfftn", kBatch, [](const Tensor& x) {
    return at::fft_irfftn(at::fft_rfftn(x), at::IntArrayRef({3, 4, 4}));
  });
  rows.function("fft::hfft", kMatrix, [](const Tensor& x) { return at::fft_hfft(x); });
  rows.function("fft::fftshift", kMatrix, [](const Tensor& x) { return at::fft_fftshift(x); });
  rows.function("torch::stft", {2, 32}, [](const Tensor& x) {
    return at::stft(x,
                    16,
                    c10::optional<int64_t>(8),
                    c10::optional<int64_t>(16),
                    at::hann_window(16),
                    /*normalized=*/false,
                    c10::optional<bool>(true),
                    c10::optional<bool>(true));
  });
  rows.function("torch::istft", {2, 32}, [](const Tensor& x) {
    const Tensor window = at::ones({16});
    const Tensor spectrum = at::stft(x, 16, 8, 16, window, false, true, true);
    return at::istft(spectrum, 16, 8, 16, window);
  });
  rows.function("torch::complex", kMatrix, [](const Inputs& in) {
    return at::complex(in.x, in.y) * at::complex(in.y, in.x);
  });
  rows.function("torch::view_as_complex", {8, 2}, [](const Tensor& x) {
    return at::view_as_real(at::view_as_complex(x).conj() * 2);
  });
  rows.function("torch::polar", kMatrix, [](const Inputs& in) {
    return at::real(at::polar(in.x.abs(), in.y));
  });
}

void add_others(Rows& rows) {
  rows.function("autograd::grad, of second order", kMatrix, [](const Tensor& x) {
    return torch::autograd::grad(
               {x.sin().sum()}, {x}, {}, /*retain_graph=*/true, /*create_graph=*/true)[0]
        .square();
  });
  rows.function("Tensor::to, bfloat16", kMatrix, [](const Tensor& x) {
    return x.to(at::kBFloat16).mul(2).to(at::kFloat);
  });
  rows.function(
      "Tensor::to, double", kMatrix, [](const Tensor& x) { return x.to(at::kDouble).exp(); });
  rows.function("Tensor::to, half", kMatrix, [](const Tensor& x) {
    return x.to(at::kHalf).add(1).to(at::kFloat);
  });
  rows.function(
      "Tensor::to_sparse", kMatrix, [](const Tensor& x) { return x.to_sparse().to_dense(); });
  rows.function(
      "Tensor::item", kMatrix, [](const Tensor& x) { return x * x.sum().item<double>(); });
  rows.function("Tensor::register_hook", kMatrix, [](const Tensor& x) {
    const Tensor y = x * 2;
    y.register_hook([](const Tensor& grad) { return grad * 0.5; });
    return y;
  });
  rows.function("Tensor::add_, in place", kMatrix, [](const Inputs& in) {
    return (in.x * 2).add_(in.y).mul_(3);
  });
  rows.function("Tensor::copy_", kMatrix, [](const Tensor& x) {
    return at::zeros({8, 6}).copy_(x).mul(2);
  });
  rows.function("Tensor::fill_diagonal_", kSquare, [](const Tensor& x) {
    return (x * 2).fill_diagonal_(0.5);
  });
  rows.function("torch::cosine_similarity", kMatrix, [](const Inputs& in) {
    return at::cosine_similarity(in.x, in.y);
  });
  rows.function("torch::pdist", kMatrix, [](const Tensor& x) { return at::pdist(x); });
  rows.function("torch::channel_shuffle", {2, 4, 3, 3}, [](const Inputs& in) {
    return at::channel_shuffle(in.y, 2) * in.x;
  });
  rows.function("torch::corrcoef", kMatrix, [](const Tensor& x) { return at::corrcoef(x); });
  rows.function("torch::cov", kMatrix, [](const Tensor& x) { return at::cov(x); });
  rows.function("torch::softmax", kMatrix, [](const Tensor& x) { return at::softmax(x, 0); });
  rows.function(
      "torch::log_softmax", kMatrix, [](const Tensor& x) { return at::log_softmax(x, 1); });
  rows.function("torch::_weight_norm", kMatrix, [](const Inputs& in) {
    return at::_weight_norm(in.x, in.y.slice(1, 0, 1).abs(), 0);
  });
}

}  // namespace

std::vector<Row> other_operators() {
  Rows rows("operator");
  add_shapes(rows);
  add_indexing(rows);
  add_sorting(rows);
  add_products(rows);
  add_linear_algebra(rows);
  add_transforms(rows);
  add_others(rows);
  return rows.take();
}

}  // namespace rondo::test
