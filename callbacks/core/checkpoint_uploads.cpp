#include "callbacks/core/checkpoint_uploads.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "checkpoint/checkpoint_index.h"
#include "core/error.h"
#include "core/stopwatch.h"
#include "remote/remote_error.h"

namespace rondo {

namespace fs = std::filesystem;

namespace {

constexpr const char kIndex[] = "checkpoints_index.toml";
constexpr const char kLatest[] = "latest.symlink";

std::vector<std::string> listed_in(RemoteStore& store) {
  const std::optional<std::string> text = store.read(kIndex);
  return text ? checkpoints_in_index(store.address_of(kIndex), *text) : std::vector<std::string>();
}

/// What a store lists could be anybody's: a name may not lead out of the directory.
bool stays_inside(const fs::path& name) {
  const auto leads_up = [](const fs::path& part) { return part == ".."; };
  return name.is_relative() && std::none_of(name.begin(), name.end(), leads_up);
}

}  // namespace

CheckpointUploads::CheckpointUploads(OpenRemoteStore open, Options options)
    : open_(std::move(open)), options_(std::move(options)) {}

CheckpointUploads::~CheckpointUploads() {
  finish(std::chrono::seconds(0));
}

std::unique_ptr<RemoteStore> CheckpointUploads::open() const {
  RemoteSettings settings = options_.settings;
  settings.retry.gives_up = gives_up_;
  return open_(options_.address, std::move(settings));
}

std::string CheckpointUploads::name_of(const fs::path& checkpoint) const {
  const fs::path relative = fs::absolute(checkpoint)
                                .lexically_normal()
                                .lexically_relative(fs::absolute(options_.root).lexically_normal());
  return stays_inside(relative) ? relative.generic_string() : checkpoint.filename().string();
}

void CheckpointUploads::sort_by_step(std::vector<std::string>& names) const {
  const auto step_of = [this](const std::string& name) {
    return options_.name.match(fs::path(name).filename().string());
  };
  std::stable_sort(names.begin(), names.end(), [&](const auto& a, const auto& b) {
    return step_of(a) < step_of(b);
  });
}

void CheckpointUploads::begin(const std::vector<fs::path>& here) {
  gives_up_ = std::make_shared<std::atomic<bool>>(false);
  std::shared_ptr<RemoteStore> store = open();
  store->check_access();
  listed_ = listed_in(*store);
  to_remove_.clear();
  failed_.clear();
  last_failed_ = false;
  ends_ = false;
  for (const fs::path& checkpoint : here) {
    if (std::find(listed_.begin(), listed_.end(), name_of(checkpoint)) == listed_.end()) {
      jobs_.push_back({false, checkpoint});
    }
  }
  thread_ = std::thread([this, store] { work(*store); });
}

void CheckpointUploads::upload(const fs::path& checkpoint) {
  push({false, checkpoint});
}

void CheckpointUploads::remove(const fs::path& checkpoint) {
  push({true, checkpoint});
}

void CheckpointUploads::push(Job job) {
  const std::lock_guard<std::mutex> lock(mutex_);
  jobs_.push_back(std::move(job));
  changed_.notify_all();
}

std::vector<CheckpointUploads::Event> CheckpointUploads::take_events() {
  const std::lock_guard<std::mutex> lock(mutex_);
  return std::exchange(events_, {});
}

void CheckpointUploads::report(bool is_warning, std::string text) {
  const std::lock_guard<std::mutex> lock(mutex_);
  events_.push_back({is_warning, std::move(text)});
}

int64_t CheckpointUploads::finish(std::chrono::seconds timeout) {
  if (!thread_.joinable()) {
    return 0;
  }
  {
    std::unique_lock<std::mutex> lock(mutex_);
    changed_.wait_for(lock, timeout, [this] { return jobs_.empty(); });
    ends_ = true;
    *gives_up_ = !jobs_.empty();
    changed_.notify_all();
  }
  thread_.join();
  for (const Job& job : std::exchange(jobs_, {})) {
    if (!job.is_removal) {
      failed_.insert(job.checkpoint);
      events_.push_back({true,
                         fmt::format("{} was not uploaded in time (checkpoint.upload_timeout); the "
                                     "next start uploads it",
                                     job.checkpoint.string())});
    }
  }
  return static_cast<int64_t>(failed_.size());
}

void CheckpointUploads::work(RemoteStore& store) {
  std::unique_lock<std::mutex> lock(mutex_);
  while (true) {
    changed_.wait(lock, [this] { return ends_ || !jobs_.empty(); });
    if (jobs_.empty() || *gives_up_) {
      return;
    }
    const Job job = jobs_.front();
    lock.unlock();
    work_on(store, job);
    lock.lock();
    if (*gives_up_) {
      return;  // whether it was done is not known: it counts as not done
    }
    jobs_.pop_front();
    changed_.notify_all();
  }
}

void CheckpointUploads::work_on(RemoteStore& store, const Job& job) {
  try {
    if (job.is_removal) {
      remove_now(store, job.checkpoint);
    } else {
      upload_now(store, job.checkpoint);
    }
  } catch (const std::exception&) {
    const std::string why = describe(std::current_exception());
    if (job.is_removal) {
      report(true, fmt::format("{} could not be removed: {}", job.checkpoint.string(), why));
      return;
    }
    last_failed_ = true;
    failed_.insert(job.checkpoint);
    if (!*gives_up_) {
      report(true,
             fmt::format("{} is not uploaded: {}; the file stays, and the next start uploads it",
                         job.checkpoint.string(),
                         why));
    }
  }
}

void CheckpointUploads::upload_now(RemoteStore& store, const fs::path& checkpoint) {
  const Stopwatch watch;
  const std::string name = name_of(checkpoint);
  store.upload(checkpoint, name);
  listed_.erase(std::remove(listed_.begin(), listed_.end(), name), listed_.end());
  listed_.push_back(name);
  sort_by_step(listed_);
  store.put(kIndex, index_text(listed_));
  store.put(kLatest, listed_.back() + "\n");
  failed_.erase(checkpoint);
  last_failed_ = false;
  report(false, fmt::format("uploaded {} in {:.2f} s", store.address_of(name), watch.seconds()));
  for (const std::string& old : std::exchange(to_remove_, {})) {
    remove_there(store, old);
  }
}

void CheckpointUploads::remove_now(RemoteStore& store, const fs::path& checkpoint) {
  if (failed_.count(checkpoint) > 0) {
    return;  // it is nowhere else
  }
  options_.delete_here(checkpoint);
  if (options_.keeps_all) {
    return;
  }
  if (last_failed_) {
    to_remove_.push_back(name_of(checkpoint));
  } else {
    remove_there(store, name_of(checkpoint));
  }
}

void CheckpointUploads::remove_there(RemoteStore& store, const std::string& name) {
  const auto kept = std::remove(listed_.begin(), listed_.end(), name);
  if (kept != listed_.end()) {
    listed_.erase(kept, listed_.end());
    store.put(kIndex, index_text(listed_));  // first: the index lists no object that is not there
  }
  store.remove(name);
}

std::optional<fs::path> CheckpointUploads::fetch_newest() {
  const auto store = open();
  std::vector<std::string> names = listed_in(*store);
  sort_by_step(names);
  std::exception_ptr error;
  for (auto newest = names.rbegin(); newest != names.rend(); ++newest) {
    if (!stays_inside(*newest)) {
      throw CheckpointError(
          fmt::format("{} lists \"{}\", which is not a name under the run's directory",
                      store->address_of(kIndex),
                      *newest));
    }
    const fs::path here = options_.root / *newest;
    try {
      if (store->download(*newest, here)) {
        return here;
      }
      report(true, store->address_of(*newest) + " is in the index there but no longer exists");
    } catch (const RemoteError&) {
      error = std::current_exception();
      report(true, describe(error) + "; trying the previous checkpoint");
    }
  }
  if (error) {
    std::rethrow_exception(error);
  }
  return std::nullopt;
}

}  // namespace rondo
