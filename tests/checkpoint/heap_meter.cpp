#include "checkpoint/heap_meter.h"

#include <malloc.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>

namespace rondo::test {

namespace {

/// Of this thread.
struct Count {
  bool is_on = false;
  int64_t now = 0;
  int64_t peak = 0;
};

thread_local Count count;

}  // namespace

HeapMeter::HeapMeter() {
  count = Count();
  count.is_on = true;
}

HeapMeter::~HeapMeter() {
  count.is_on = false;
}

int64_t HeapMeter::peak() const {
  return count.peak;
}

}  // namespace rondo::test

#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)

namespace {

using rondo::test::count;

void* counted(void* block) {
  if (count.is_on) {
    count.now += static_cast<int64_t>(::malloc_usable_size(block));
    count.peak = std::max(count.peak, count.now);
  }
  return block;
}

void discount(void* block) {
  if (count.is_on) {
    count.now -= static_cast<int64_t>(::malloc_usable_size(block));
  }
}

}  // namespace

extern "C" {
void* __libc_malloc(size_t);
void* __libc_calloc(size_t, size_t);
void* __libc_realloc(void*, size_t);
void* __libc_memalign(size_t, size_t);
void __libc_free(void*);

void* malloc(size_t size) {
  return counted(__libc_malloc(size));
}

void* calloc(size_t number, size_t size) {
  return counted(__libc_calloc(number, size));
}

void* realloc(void* old, size_t size) {
  discount(old);
  return counted(__libc_realloc(old, size));
}

int posix_memalign(void** result, size_t alignment, size_t size) {
  *result = counted(__libc_memalign(alignment, size));
  return *result == nullptr ? ENOMEM : 0;
}

void* aligned_alloc(size_t alignment, size_t size) {
  return counted(__libc_memalign(alignment, size));
}

void* memalign(size_t alignment, size_t size) {
  return counted(__libc_memalign(alignment, size));
}

void free(void* block) {
  discount(block);
  __libc_free(block);
}
}

#endif
