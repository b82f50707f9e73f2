#pragma once

#include <exception>
#include <stdexcept>
#include <string>
#include <vector>

namespace rondo {

/// Root of everything that rondo throws. The derived types differ in what the caller can do about
/// it.
struct Error : std::runtime_error {
  using std::runtime_error::runtime_error;
};

/// The API was called wrongly from code: a bad option value, a call at the wrong moment.
struct UsageError : Error {
  using Error::Error;
};

/// A tensor or a batch has the wrong shape, dtype or device.
struct ShapeError : Error {
  using Error::Error;
};

/// A data set, a data file or a batch is not what its reader expects (the message names file and
/// offset or line).
struct DataError : Error {
  using Error::Error;
};

/// A checkpoint cannot be written, read or applied (the message names path, record and offset).
struct CheckpointError : Error {
  using Error::Error;
};

/// rondo does not support something; the message says what to use instead.
struct NotSupportedError : Error {
  using Error::Error;
};

/// The step cannot be recorded once and replayed; the message names callback, hook, operator and an
/// alternative. Passes through hook dispatch unwrapped.
struct CaptureError : Error {
  using Error::Error;
};

/// The loss, a gradient or a weight is NaN or infinite. Passes through hook dispatch unwrapped.
struct NonFiniteLossError : Error {
  using Error::Error;
};

/// A call of the operating system failed.
struct IoError : Error {
  /// \param what   operation and path
  /// \param error  the value of `errno` after the failed call; 0 when there was none
  IoError(const std::string& what, int error);

  int error_number = 0;
};

/// A hook of a callback threw. Nests its cause: see `root_cause`.
struct HookError : Error {
  using Error::Error;
};

/// The position of a value in a file. Line and column count from 1; 0 means "not known".
struct SourcePosition {
  std::string file;
  int line = 0;
  int column = 0;
};

/// `file:line:col`, without unknown parts.
std::string to_string(const SourcePosition& position);

/// One error in a config file.
struct Fault {
  SourcePosition position;
  std::string path;     ///< dotted key, such as `trainer.init.optimizer.AdamW.lr`; may be empty
  std::string message;  ///< what was expected, what was found, what to do
};

/// `file:line:col: path: message`, without unknown parts.
std::string to_string(const Fault& fault);

/// All faults of a config, in file order, one per line.
struct ConfigError : Error {
  explicit ConfigError(std::vector<Fault> faults);
  explicit ConfigError(Fault fault);

  std::vector<Fault> faults;
};

/// Follows nested exceptions to the innermost one.
/// \return `error` itself when it nests nothing; null for null
std::exception_ptr root_cause(std::exception_ptr error);

/// The messages of `error` and of everything it nests, outermost first, joined by ": ".
std::string describe(std::exception_ptr error);

}  // namespace rondo
