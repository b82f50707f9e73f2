#include "callbacks/builtin/notify_command.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <filesystem>

#include "core/error.h"
#include "core/file_system.h"
#include "core/registry.h"
#include "core/require.h"
#include "trainer/trainer.h"

namespace rondo {

namespace {

/// Runs a command of the shell with a file as its input and standard error as its output.
/// \return as `waitpid` gives it
int run(std::string command, const std::filesystem::path& input) {
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, input.c_str(), O_RDONLY, 0);
  posix_spawn_file_actions_adddup2(&actions, STDERR_FILENO, STDOUT_FILENO);
  std::string shell = "sh";
  std::string option = "-c";
  const std::array<char*, 4> arguments = {shell.data(), option.data(), command.data(), nullptr};
  pid_t child = 0;
  const int error = posix_spawn(&child, "/bin/sh", &actions, nullptr, arguments.data(), environ);
  posix_spawn_file_actions_destroy(&actions);
  if (error != 0) {
    throw IoError("cannot run /bin/sh", error);
  }
  int status = 0;
  while (waitpid(child, &status, 0) < 0) {
    if (errno != EINTR) {
      throw IoError("cannot wait for /bin/sh", errno);
    }
  }
  return status;
}

}  // namespace

NotifyCommand::NotifyCommand(const Options& options) : options_(options) {
  detail::require(!options.command.empty(), "NotifyCommand.command", "given", "nothing");
}

void NotifyCommand::send(Trainer& trainer, const std::string& text) {
  const std::filesystem::path file = trainer.state().artifact_dir / "notification.txt";
  write_atomically(*real_file_system(), file, text);
  const int status = run(options_.command, file);
  if (status != 0) {
    throw IoError(fmt::format("\"{}\" ended with {}",
                              options_.command,
                              WIFEXITED(status) ? fmt::format("code {}", WEXITSTATUS(status))
                                                : fmt::format("signal {}", WTERMSIG(status))),
                  0);
  }
}

void register_notify_command(Registry<Callback>& registry) {
  registry
      .add<NotifyCommand>("NotifyCommand",
                          "Runs a command when a fit is done, when it failed, and for each alert.")
      .key("command",
           &NotifyCommand::Options::command,
           "what the shell runs; the message is its standard input")
      .required();
}

}  // namespace rondo
