#include "callbacks/builtin/run_time_limit.h"

#include <fmt/format.h>

#include "core/registry.h"
#include "core/require.h"
#include "trainer/trainer.h"

namespace rondo {

RunTimeLimit::RunTimeLimit(const Options& options) : options_(options) {
  detail::require(options.limit_s > 0.0, "RunTimeLimit.limit_s", "> 0", options.limit_s);
}

void RunTimeLimit::on_fit_start(Trainer&, const DataLoader&, const Loaders&, Loop&) {
  begin_ = std::chrono::steady_clock::now();
}

void RunTimeLimit::on_train_batch_end(
    Trainer& trainer, Model&, const Outputs&, const Batch&, int64_t) {
  const std::chrono::duration<double> past = std::chrono::steady_clock::now() - begin_;
  if (past.count() >= options_.limit_s && trainer.stop_reason() == nullptr) {
    trainer.log().info(fmt::format("RunTimeLimit ends the run after {:.1f} s", past.count()));
    trainer.request_stop("stopped by RunTimeLimit");
  }
}

void register_run_time_limit(Registry<Callback>& registry) {
  registry.add<RunTimeLimit>("RunTimeLimit", "Ends a fit after a time; a later start continues it.")
      .key("limit_s", &RunTimeLimit::Options::limit_s, greater_than(0), "seconds from its start")
      .required();
}

}  // namespace rondo
