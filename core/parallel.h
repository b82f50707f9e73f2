#pragma once

#include <algorithm>
#include <cstdint>

namespace rondo {

/// Elements that are worth a thread. Four times as many as LibTorch takes: rondo's threads sleep
/// while there is nothing to do, and waking one takes as long as 32,768 elements.
inline constexpr int64_t kElementsOfThread = 131072;

/// How many items of so many elements are.
inline int64_t grain_of(int64_t elements_of_item) {
  return std::max<int64_t>(kElementsOfThread / std::max<int64_t>(elements_of_item, 1), 1);
}

namespace detail {

void parallel_for(int64_t count,
                  int64_t grain,
                  void (*call)(const void* body, int64_t begin, int64_t end),
                  const void* body);

}  // namespace detail

/// Calls `body(begin, end)` for parts of [0, count), at least `grain` items each, on LibTorch's
/// threads, as `at::parallel_for` does and in the same parts. That one is a loop on one thread in
/// every file that is compiled without OpenMP, as all of rondo's are but parallel.cpp.
/// With clang, whose OpenMP would bring threads of its own, `body` runs on one thread.
/// \throws whatever `body` throws
template <class Body>
void parallel_for(int64_t count, int64_t grain, const Body& body) {
  detail::parallel_for(
      count,
      grain,
      [](const void* of, int64_t begin, int64_t end) {
        (*static_cast<const Body*>(of))(begin, end);
      },
      &body);
}

/// Calls `body(i)` for each of `count` items of so many elements, several at a time where that is
/// worth it.
template <class Body>
void parallel_for_each(int64_t count, int64_t elements_of_item, const Body& body) {
  parallel_for(count, grain_of(elements_of_item), [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      body(i);
    }
  });
}

/// How many threads have something to do where the items have so many elements in all: one within a
/// part of other work.
int threads_for(int64_t elements);

/// While it lives, what this thread calls uses no other threads: for work in pieces that are too
/// short to wake one. Unlike `at::set_num_threads` it costs nothing. With clang it does nothing.
class OnThisThread {
 public:
  OnThisThread();
  OnThisThread(const OnThisThread&) = delete;
  OnThisThread& operator=(const OnThisThread&) = delete;
  ~OnThisThread();

 private:
  int threads_before_;
};

}  // namespace rondo
