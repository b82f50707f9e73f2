#pragma once

// The verbs that rules are written in (rule.h), named as ATen's. A value is an element of a vector
// loop or a tensor; a number is one of the loop's type, a double, or a 0-dim tensor on the
// parameter's device. Elements are rounded as LibTorch's CPU operators round them: what is one
// fused multiply-add there is one here.
//
// Of tensors, `abs`, `clamp`, `clamp_min`, `maximum`, `pow`, `sign` and `sqrt` are ATen's own, and
// so are `addcmul` and `addcdiv` without a value.
//
// For elements they are RONDO_INLINE and call nothing but builtins (core/vector_loop.h).

#include <ATen/TensorOperators.h>
#include <ATen/core/Tensor.h>
#include <ATen/ops/abs.h>
#include <ATen/ops/add.h>
#include <ATen/ops/addcdiv.h>
#include <ATen/ops/addcmul.h>
#include <ATen/ops/clamp.h>
#include <ATen/ops/clamp_min.h>
#include <ATen/ops/full_like.h>
#include <ATen/ops/gt.h>
#include <ATen/ops/maximum.h>
#include <ATen/ops/ne.h>
#include <ATen/ops/pow.h>
#include <ATen/ops/sign.h>
#include <ATen/ops/sqrt.h>
#include <ATen/ops/where.h>

#include <cmath>
#include <type_traits>

#include "core/vector_loop.h"

namespace rondo::rules {

template <class T>
using IfElement = std::enable_if_t<std::is_floating_point_v<T>, T>;

RONDO_INLINE float fma(float a, float b, float c) {
  return __builtin_fmaf(a, b, c);
}

RONDO_INLINE double fma(double a, double b, double c) {
  return __builtin_fma(a, b, c);
}

RONDO_INLINE float sqrt(float x) {
  return __builtin_sqrtf(x);
}

RONDO_INLINE double sqrt(double x) {
  return __builtin_sqrt(x);
}

RONDO_INLINE float abs(float x) {
  return __builtin_fabsf(x);
}

RONDO_INLINE double abs(double x) {
  return __builtin_fabs(x);
}

/// -1, 0 or 1; 0 of NaN
template <class T>
RONDO_INLINE IfElement<T> sign(T x) {
  return static_cast<T>(x > 0 ? 1 : 0) - static_cast<T>(x < 0 ? 1 : 0);
}

/// The larger one; NaN when one is
template <class T>
RONDO_INLINE IfElement<T> maximum(T x, T y) {
  return x > y || x != x ? x : y;
}

/// Rounded as `mul_`, which torch::optim calls: in LibTorch 2.x only that one rounds the number to
/// a dtype of 16 bits first.
inline at::Tensor operator*(const at::Tensor& x, double number) {
  return x.clone().mul_(number);
}

/// x + alpha y
template <class T>
RONDO_INLINE IfElement<T> add(T x, T y, T alpha) {
  return fma(y, alpha, x);
}

inline at::Tensor add(const at::Tensor& x, const at::Tensor& y, double alpha) {
  return at::add(x, y, alpha);
}

inline at::Tensor add(const at::Tensor& x, const at::Tensor& y, const at::Tensor& alpha) {
  return at::add(x, y * alpha);
}

/// x + y z
template <class T>
RONDO_INLINE IfElement<T> addcmul(T x, T y, T z) {
  return fma(y, z, x);
}

/// x + value y z
template <class T>
RONDO_INLINE IfElement<T> addcmul(T x, T y, T z, T value) {
  return fma(value * y, z, x);
}

inline at::Tensor addcmul(const at::Tensor& x,
                          const at::Tensor& y,
                          const at::Tensor& z,
                          double value) {
  return at::addcmul(x, y, z, value);
}

inline at::Tensor addcmul(const at::Tensor& x,
                          const at::Tensor& y,
                          const at::Tensor& z,
                          const at::Tensor& value) {
  return at::addcmul(x, y * value, z);
}

/// x + y / z
template <class T>
RONDO_INLINE IfElement<T> addcdiv(T x, T y, T z) {
  return x + y / z;
}

/// x + value y / z
template <class T>
RONDO_INLINE IfElement<T> addcdiv(T x, T y, T z, T value) {
  return x + value * y / z;
}

inline at::Tensor addcdiv(const at::Tensor& x,
                          const at::Tensor& y,
                          const at::Tensor& z,
                          double value) {
  return at::addcdiv(x, y, z, value);
}

inline at::Tensor addcdiv(const at::Tensor& x,
                          const at::Tensor& y,
                          const at::Tensor& z,
                          const at::Tensor& value) {
  return at::addcdiv(x, y * value, z);
}

/// x within [least, most]; NaN when x is
template <class T>
RONDO_INLINE IfElement<T> clamp(T x, T least, T most) {
  const T low = x < least ? least : x;
  return low > most ? most : low;
}

/// The number in the shape of a value
template <class T, class Number>
RONDO_INLINE IfElement<T> filled(T /*like*/, Number number) {
  return static_cast<T>(number);
}

inline at::Tensor filled(const at::Tensor& like, double number) {
  return at::full_like(like, number);
}

inline at::Tensor filled(const at::Tensor& like, const at::Tensor& number) {
  return number.to(like.scalar_type()).expand_as(like);
}

/// `yes` where the value is greater than zero, else `no`
template <class T>
RONDO_INLINE IfElement<T> where_positive(T value, T yes, T no) {
  return value > 0 ? yes : no;
}

inline at::Tensor where_positive(const at::Tensor& value,
                                 const at::Tensor& yes,
                                 const at::Tensor& no) {
  return at::where(value.gt(0), yes, no);
}

/// `yes` where the number is not zero, else `no`
template <class T>
RONDO_INLINE IfElement<T> select(T number, T yes, T no) {
  return number != 0 ? yes : no;
}

inline at::Tensor select(double number, const at::Tensor& yes, const at::Tensor& no) {
  return number != 0 ? yes : no;
}

inline at::Tensor select(const at::Tensor& number, const at::Tensor& yes, const at::Tensor& no) {
  return at::where(number.ne(0), yes, no);
}

/// x + alpha y, or x as it is where alpha is zero: adding 0 * y would turn -0 into +0, and inf into
/// NaN
template <class V, class Number>
RONDO_INLINE V add_nonzero(const V& x, const V& y, const Number& alpha) {
  return select(alpha, add(x, y, alpha), x);
}

// Of numbers alone.

inline double pow(double base, double exponent) {
  return std::pow(base, exponent);
}

/// The larger of a number and a bound
inline double clamp_min(double number, double bound) {
  return number > bound ? number : bound;
}

/// 1 where the number is greater than the bound, else 0
inline double is_greater(double number, double bound) {
  return number > bound ? 1.0 : 0.0;
}

inline at::Tensor is_greater(const at::Tensor& number, double bound) {
  return number.gt(bound).to(number.scalar_type());
}

}  // namespace rondo::rules
