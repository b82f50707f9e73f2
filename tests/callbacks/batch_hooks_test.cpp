#include "callbacks/batch_hooks.h"

#include <doctest/doctest.h>

#include <memory>
#include <utility>

#include "callbacks/callback.h"
#include "callbacks/callback_map.h"
#include "core/factory.h"
#include "support/temp_dir.h"
#include "support/tiny_run.h"
#include "trainer/trainer.h"

TEST_SUITE_BEGIN("callbacks/batch_hooks");

namespace {

using namespace rondo;
using namespace rondo::test;

/// Where callbacks with one hook of a batch each count how often it was called.
struct CallOptions {
  int* calls = nullptr;
};

class Counting : public Callback {
 public:
  using Options = CallOptions;

  explicit Counting(const Options& options) : calls_(options.calls) {}

 protected:
  int* calls_;
};

class TrainStarts final : public Counting {
 public:
  using Counting::Counting;

  void on_train_batch_start(Trainer&, Model&, const Batch&, int64_t) override { ++*calls_; }
};

class TrainEnds final : public Counting {
 public:
  using Counting::Counting;

  void on_train_batch_end(Trainer&, Model&, const Outputs&, const Batch&, int64_t) override {
    ++*calls_;
  }
};

class ValidateStarts final : public Counting {
 public:
  using Counting::Counting;

  void on_validate_batch_start(Trainer&, Model&, const Batch&, int64_t) override { ++*calls_; }
};

class ValidateEnds final : public Counting {
 public:
  using Counting::Counting;

  void on_validate_batch_end(Trainer&, Model&, const Outputs&, const Batch&, int64_t) override {
    ++*calls_;
  }
};

class WithoutAny final : public Callback {
 public:
  void on_train_end(Trainer&, Model&, Loop&, int64_t) override {}
};

class AtStart : public Callback {
 public:
  void on_train_batch_start(Trainer&, Model&, const Batch&, int64_t) override {}
};

class AtStartByItsBase final : public AtStart {};

class AtEndInPrivate final : public Callback {
 private:
  void on_train_batch_end(Trainer&, Model&, const Outputs&, const Batch&, int64_t) override {}
};

class AtEndOverloaded final : public Callback {
 public:
  void on_validate_batch_end(Trainer&, Model&, const Outputs&, const Batch&, int64_t) override {}

  static void on_validate_batch_end(int) {}
};

BatchHooks hooks_in_map(std::unique_ptr<Callback> callback) {
  CallbackMap map;
  map.add("X", "", "", std::move(callback));
  return map.entries().front().batch_hooks;
}

template <class T>
BatchHooks hooks_in_use() {
  return hooks_in_map(use<T>().make());
}

int count(const BatchHooks& hooks) {
  return hooks.dataloader_start + hooks.dataloader_end + hooks.train_start + hooks.train_end +
         hooks.validate_start + hooks.validate_end;
}

}  // namespace

TEST_CASE("a callback has the hooks of a batch that its class or a base of it overrides") {
  CHECK(count(hooks_in_use<WithoutAny>()) == 0);
  CHECK(hooks_in_use<AtStart>().train_start);
  CHECK(hooks_in_use<AtStartByItsBase>().train_start);
  CHECK(count(hooks_in_use<AtStartByItsBase>()) == 1);
}

TEST_CASE("a hook that a class hides counts as its own") {
  CHECK(hooks_in_use<AtEndInPrivate>().train_end);
  CHECK(count(hooks_in_use<AtEndInPrivate>()) == 1);
  CHECK(hooks_in_use<AtEndOverloaded>().validate_end);
  CHECK(count(hooks_in_use<AtEndOverloaded>()) == 1);
}

TEST_CASE("a callback whose class is not known has all of them") {
  CHECK(count(hooks_in_map(std::make_unique<WithoutAny>())) == 6);
}

TEST_CASE("a callback that has one hook of a batch is called there in every batch") {
  const TempDir dir;
  int train_starts = 0;
  int train_ends = 0;
  int validate_starts = 0;
  int validate_ends = 0;
  TrainerOptions options = tiny_options(dir / "run");
  options.callbacks = {use<TrainStarts>({&train_starts}),
                       use<TrainEnds>({&train_ends}),
                       use<ValidateStarts>({&validate_starts}),
                       use<ValidateEnds>({&validate_ends})};
  options.loop.max_steps = 7;
  Trainer trainer(options, quiet_log());
  trainer.fit(tiny_loader("train"));
  CHECK(train_starts == 7);
  CHECK(train_ends == 7);
  CHECK(validate_starts == 0);
  trainer.validate(tiny_loader("val", 6));
  CHECK(validate_starts == 3);
  CHECK(validate_ends == 3);
  CHECK(train_ends == 7);
}

TEST_SUITE_END();
