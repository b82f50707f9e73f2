#pragma once

#include <cstddef>
#include <map>

namespace rondo::detail {

/// Memory whose writers wait until it is released: the kernel stops whatever code of the process
/// writes there (write protection by userfaultfd). Readers go on. It takes Linux 6.4, the first to
/// protect pages that were never touched as well, and a sandbox that allows the call.
///
/// A process without the privilege to stop the kernel's own writes stops those of its code only:
/// a system call that is given held memory to fill fails with EFAULT there. Devices that were given
/// the memory to write to are not stopped.
class HeldPages {
 public:
  HeldPages() noexcept;
  HeldPages(const HeldPages&) = delete;
  HeldPages& operator=(const HeldPages&) = delete;
  /// Releases all.
  ~HeldPages();

  /// False where the system has no such thing: nothing can be held.
  bool is_available() const { return fd_ >= 0; }

  /// Makes `hold` faster for what lies in here: the system is asked once for many neighbours. When
  /// it refuses, each is asked for by itself. \param begin, bytes  whole pages
  void prepare(const char* begin, size_t bytes);

  /// Holds memory of this process. \param begin, bytes  whole pages \return false when the system
  /// refuses, as it does for most files that are mapped: nothing is held then
  bool hold(const char* begin, size_t bytes);

  /// Lets go of pages that are held, and lets those who waited for them go on.
  void release(const char* begin, size_t bytes) noexcept;

  /// Where somebody waits for a page to be released; null when nobody does. Each is told once.
  const char* next_waiting() noexcept;

 private:
  bool watch(const char* begin, size_t bytes);
  bool is_watched(const char* begin, size_t bytes) const;

  int fd_ = -1;
  std::map<const char*, size_t> watched_;  // bytes from there on; all that is held lies in these
};

}  // namespace rondo::detail
