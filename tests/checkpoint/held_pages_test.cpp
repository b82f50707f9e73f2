#include "checkpoint/internal/held_pages.h"

#include <doctest/doctest.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <csignal>
#include <cstddef>
#include <memory>
#include <thread>

using rondo::detail::HeldPages;

TEST_SUITE_BEGIN("checkpoint/held_pages");

namespace {

/// Fresh pages of this process, none of them touched.
class Pages {
 public:
  explicit Pages(int count)
      : bytes_(static_cast<size_t>(count) * page_bytes()),
        begin_(static_cast<char*>(
            ::mmap(nullptr, bytes_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0))) {}

  Pages(const Pages&) = delete;
  Pages& operator=(const Pages&) = delete;

  ~Pages() { ::munmap(begin_, bytes_); }

  static size_t page_bytes() { return static_cast<size_t>(::sysconf(_SC_PAGESIZE)); }

  char* page(int index) { return begin_ + static_cast<size_t>(index) * page_bytes(); }

  const char* begin() const { return begin_; }

  size_t bytes() const { return bytes_; }

 private:
  size_t bytes_;
  char* begin_;
};

const char* wait_for_writer(HeldPages& held) {
  for (;;) {
    if (const char* place = held.next_waiting()) {
      return place;
    }
    std::this_thread::yield();
  }
}

}  // namespace

TEST_CASE("a writer waits for its page, touched before or not, and only for that one") {
  for (const bool is_touched : {true, false}) {
    CAPTURE(is_touched);
    Pages pages(3);
    if (is_touched) {
      *pages.page(1) = 1;
    }
    const char before = *pages.page(1);
    HeldPages held;
    if (!held.is_available()) {
      MESSAGE("skipped: this system holds no pages");
      return;
    }
    REQUIRE(held.hold(pages.begin() + Pages::page_bytes(), Pages::page_bytes()));
    *pages.page(0) = 7;
    *pages.page(2) = 7;
    CHECK(held.next_waiting() == nullptr);
    std::atomic<bool> is_written{false};
    std::thread writer([&] {
      *pages.page(1) = 9;
      is_written = true;
    });
    CHECK(wait_for_writer(held) == pages.page(1));
    CHECK_FALSE(is_written);
    CHECK(*pages.page(1) == before);
    held.release(pages.begin() + Pages::page_bytes(), Pages::page_bytes());
    writer.join();
    CHECK(*pages.page(1) == 9);
  }
}

TEST_CASE("when all is let go whoever waits goes on, also beside a child forked meanwhile") {
  for (const bool has_child : {false, true}) {
    CAPTURE(has_child);
    Pages pages(4);
    auto held = std::make_unique<HeldPages>();
    if (!held->is_available()) {
      MESSAGE("skipped: this system holds no pages");
      return;
    }
    REQUIRE(held->hold(pages.begin(), pages.bytes()));
    const pid_t child = has_child ? ::fork() : -1;
    if (child == 0) {
      ::pause();
      ::_exit(0);
    }
    std::thread writer([&] { *pages.page(2) = 5; });
    wait_for_writer(*held);
    held.reset();
    writer.join();
    CHECK(*pages.page(2) == 5);
    CHECK(HeldPages().hold(pages.begin(), pages.bytes()));
    if (has_child) {
      ::kill(child, SIGKILL);
      ::waitpid(child, nullptr, 0);
    }
  }
}

TEST_CASE("of a prepared range only what is held makes writers wait, and all is let go") {
  Pages pages(4);
  {
    HeldPages held;
    if (!held.is_available()) {
      MESSAGE("skipped: this system holds no pages");
      return;
    }
    held.prepare(pages.begin(), pages.bytes());
    REQUIRE(held.hold(pages.begin() + Pages::page_bytes(), Pages::page_bytes()));
    *pages.page(0) = 7;
    *pages.page(2) = 7;
    CHECK(held.next_waiting() == nullptr);
    std::thread writer([&] { *pages.page(1) = 9; });
    CHECK(wait_for_writer(held) == pages.page(1));
    CHECK_FALSE(HeldPages().hold(pages.begin(), pages.bytes()));
    held.release(pages.begin() + Pages::page_bytes(), Pages::page_bytes());
    writer.join();
  }
  CHECK(HeldPages().hold(pages.begin(), pages.bytes()));
}

TEST_CASE("a range that cannot be prepared is held where it can") {
  Pages pages(3);
  HeldPages other;
  HeldPages held;
  if (!held.is_available()) {
    MESSAGE("skipped: this system holds no pages");
    return;
  }
  REQUIRE(other.hold(pages.page(1), Pages::page_bytes()));
  held.prepare(pages.begin(), pages.bytes());
  CHECK(held.hold(pages.page(0), Pages::page_bytes()));
  CHECK_FALSE(held.hold(pages.page(1), Pages::page_bytes()));
  CHECK(held.hold(pages.page(2), Pages::page_bytes()));
}

TEST_CASE("what is no memory is refused, and so are pages that another holds") {
  Pages pages(2);
  HeldPages first;
  HeldPages second;
  if (!first.is_available()) {
    MESSAGE("skipped: this system holds no pages");
    return;
  }
  CHECK_FALSE(first.hold(nullptr, Pages::page_bytes()));
  CHECK_FALSE(first.hold(pages.begin() + 1, Pages::page_bytes()));
  CHECK(first.hold(pages.begin(), pages.bytes()));
  CHECK_FALSE(second.hold(pages.begin(), pages.bytes()));
}

TEST_SUITE_END();
