#pragma once

#include <exception>
#include <stdexcept>
#include <string>
#include <vector>

namespace rondo {

/// Root of everything rondo throws. The children say what the caller can do about it.
struct Error : std::runtime_error {
  using std::runtime_error::runtime_error;
};

/// The API was called wrongly from code: a bad option value, a call at the wrong moment.
struct UsageError : Error {
  using Error::Error;
};

/// A tensor or a batch has another shape, dtype or device than the code needs.
struct ShapeError : Error {
  using Error::Error;
};

/// A data set, a data file or a batch is not what its reader expects (file and offset or line are
/// named).
struct DataError : Error {
  using Error::Error;
};

/// A checkpoint cannot be written, read or applied (path, record and offset are named).
struct CheckpointError : Error {
  using Error::Error;
};

/// Something that rondo does not do, with what to use instead.
struct NotSupportedError : Error {
  using Error::Error;
};

/// The step cannot be recorded once and replayed; names callback, hook and operator and what to use
/// instead. Passes through hook dispatch unwrapped.
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

/// Where a value stands in a file. Line and column count from 1; 0 means "not known".
struct SourcePosition {
  std::string file;
  int line = 0;
  int column = 0;
};

/// `file:line:col`, leaving out what is not known.
std::string to_string(const SourcePosition& position);

/// One thing that is wrong with a config file.
struct Fault {
  SourcePosition position;
  std::string path;     ///< dotted key, such as `trainer.init.optimizer.AdamW.lr`; may be empty
  std::string message;  ///< what was expected, what was found, what to do
};

/// `file:line:col: path: message`, leaving out what is not known.
std::string to_string(const Fault& fault);

/// Everything that is wrong with a config, in file order, one fault a line.
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
