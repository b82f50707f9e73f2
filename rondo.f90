! Training inside a Fortran program: the functions of rondo_train.h, which documents them. Compile
! this file with your program and link librondo. Push samples as contiguous arrays with dimensions
! in Fortran's order; this module reverses the dimensions for rondo, whose last one is contiguous.
module rondo
  use, intrinsic :: iso_c_binding
  implicit none
  private

  integer(c_int), parameter, public :: RONDO_OK = 0, RONDO_DONE = 1, RONDO_OVERWROTE = 2
  integer(c_int), parameter, public :: RONDO_DROPPED = 3, RONDO_ERROR = -1, RONDO_MISMATCH = -2
  integer(c_int), parameter, public :: RONDO_BAD_CONFIG = -3, RONDO_BAD_USE = -4
  integer(c_int), parameter, public :: RONDO_TOO_SMALL = -5
  integer(c_int), parameter :: int32_type = 3, int64_type = 4, float32_type = 6, float64_type = 7

  ! A tensor of a sample or of a batch: made by rondo_tensor, it keeps pointers into its array.
  type, public :: rondo_tensor_type
    private
    character(kind=c_char), allocatable :: name(:)
    integer(c_int64_t), allocatable :: sizes(:)
    integer(c_int) :: dtype = float32_type
    type(c_ptr) :: data = c_null_ptr
  end type

  type, bind(c) :: c_array
    type(c_ptr) :: name
    integer(c_int) :: dtype
    integer(c_int64_t) :: dims
    type(c_ptr) :: sizes
    type(c_ptr) :: data
  end type

  ! rondo_tensor("x", values, shape): values is a target of rank 1; shape is needed for any other
  ! rank.
  interface rondo_tensor
    module procedure tensor_float32, tensor_float64, tensor_int32, tensor_int64
  end interface

  interface
    function c_open(toml, trainer) bind(c, name="rondo_open") result(code)
      import :: c_char, c_ptr, c_int
      character(kind=c_char), intent(in) :: toml(*)
      type(c_ptr), intent(out) :: trainer
      integer(c_int) :: code
    end function
    function c_push(trainer, tensors, count) bind(c, name="rondo_push") result(code)
      import :: c_ptr, c_int, c_int64_t, c_array
      type(c_ptr), value :: trainer
      type(c_array), intent(in) :: tensors(*)
      integer(c_int64_t), value :: count
      integer(c_int) :: code
    end function
    function c_train_steps(trainer, updates) bind(c, name="rondo_train_steps") result(code)
      import :: c_ptr, c_int, c_int64_t
      type(c_ptr), value :: trainer
      integer(c_int64_t), value :: updates
      integer(c_int) :: code
    end function
    function c_train_for(trainer, seconds) bind(c, name="rondo_train_for") result(code)
      import :: c_ptr, c_int, c_double
      type(c_ptr), value :: trainer
      real(c_double), value :: seconds
      integer(c_int) :: code
    end function
    function c_updates(trainer) bind(c, name="rondo_updates") result(updates)
      import :: c_ptr, c_int64_t
      type(c_ptr), value :: trainer
      integer(c_int64_t) :: updates
    end function
    function c_infer(trainer, inputs, count, output, data, bytes, needed) &
        bind(c, name="rondo_infer") result(code)
      import :: c_ptr, c_int, c_int64_t, c_size_t, c_char, c_array
      type(c_ptr), value :: trainer
      type(c_array), intent(in) :: inputs(*)
      integer(c_int64_t), value :: count
      character(kind=c_char), intent(in) :: output(*)
      type(c_ptr), value :: data
      integer(c_size_t), value :: bytes
      integer(c_size_t), intent(out) :: needed
      integer(c_int) :: code
    end function
    function c_save(trainer) bind(c, name="rondo_save") result(code)
      import :: c_ptr, c_int
      type(c_ptr), value :: trainer
      integer(c_int) :: code
    end function
    function c_last_error() bind(c, name="rondo_last_error") result(text)
      import :: c_ptr
      type(c_ptr) :: text
    end function
    subroutine c_close(trainer) bind(c, name="rondo_close")
      import :: c_ptr
      type(c_ptr), value :: trainer
    end subroutine
    function c_strlen(text) bind(c, name="strlen") result(length)
      import :: c_ptr, c_size_t
      type(c_ptr), value :: text
      integer(c_size_t) :: length
    end function
  end interface

  public :: rondo_tensor, rondo_open, rondo_push, rondo_train_steps, rondo_train_for
  public :: rondo_updates, rondo_infer, rondo_save, rondo_last_error, rondo_close

contains

  function terminated(text) result(chars)
    character(len=*), intent(in) :: text
    character(kind=c_char), allocatable :: chars(:)
    integer :: i
    allocate (chars(len_trim(text) + 1))
    do i = 1, len_trim(text)
      chars(i) = text(i:i)
    end do
    chars(len_trim(text) + 1) = c_null_char
  end function

  function described(name, data, count, dtype, shape) result(tensor)
    character(len=*), intent(in) :: name
    type(c_ptr), intent(in) :: data
    integer, intent(in) :: count
    integer(c_int), intent(in) :: dtype
    integer, intent(in), optional :: shape(:)
    type(rondo_tensor_type) :: tensor
    tensor%name = terminated(name)
    tensor%data = data
    tensor%dtype = dtype
    if (present(shape)) then
      tensor%sizes = int(shape(size(shape):1:-1), c_int64_t)
    else
      tensor%sizes = [int(count, c_int64_t)]
    end if
  end function

  function tensor_float32(name, values, shape) result(tensor)
    character(len=*), intent(in) :: name
    real(c_float), intent(in), target, contiguous :: values(:)
    integer, intent(in), optional :: shape(:)
    type(rondo_tensor_type) :: tensor
    tensor = described(name, c_loc(values), size(values), float32_type, shape)
  end function

  function tensor_float64(name, values, shape) result(tensor)
    character(len=*), intent(in) :: name
    real(c_double), intent(in), target, contiguous :: values(:)
    integer, intent(in), optional :: shape(:)
    type(rondo_tensor_type) :: tensor
    tensor = described(name, c_loc(values), size(values), float64_type, shape)
  end function

  function tensor_int32(name, values, shape) result(tensor)
    character(len=*), intent(in) :: name
    integer(c_int32_t), intent(in), target, contiguous :: values(:)
    integer, intent(in), optional :: shape(:)
    type(rondo_tensor_type) :: tensor
    tensor = described(name, c_loc(values), size(values), int32_type, shape)
  end function

  function tensor_int64(name, values, shape) result(tensor)
    character(len=*), intent(in) :: name
    integer(c_int64_t), intent(in), target, contiguous :: values(:)
    integer, intent(in), optional :: shape(:)
    type(rondo_tensor_type) :: tensor
    tensor = described(name, c_loc(values), size(values), int64_type, shape)
  end function

  function arrays_of(tensors) result(arrays)
    type(rondo_tensor_type), intent(in), target :: tensors(:)
    type(c_array), allocatable :: arrays(:)
    integer :: i
    allocate (arrays(size(tensors)))
    do i = 1, size(tensors)
      arrays(i)%name = c_loc(tensors(i)%name)
      arrays(i)%dtype = tensors(i)%dtype
      arrays(i)%dims = size(tensors(i)%sizes)
      arrays(i)%sizes = c_null_ptr
      if (size(tensors(i)%sizes) > 0) arrays(i)%sizes = c_loc(tensors(i)%sizes)
      arrays(i)%data = tensors(i)%data
    end do
  end function

  function rondo_open(toml, trainer) result(code)
    character(len=*), intent(in) :: toml
    type(c_ptr), intent(out) :: trainer
    integer(c_int) :: code
    code = c_open(terminated(toml), trainer)
  end function

  ! A sample: rondo_push(trainer, [rondo_tensor("x", x), rondo_tensor("y", y)]).
  function rondo_push(trainer, tensors) result(code)
    type(c_ptr), intent(in) :: trainer
    type(rondo_tensor_type), intent(in), target :: tensors(:)
    integer(c_int) :: code
    code = c_push(trainer, arrays_of(tensors), int(size(tensors), c_int64_t))
  end function

  function rondo_train_steps(trainer, updates) result(code)
    type(c_ptr), intent(in) :: trainer
    integer, intent(in) :: updates
    integer(c_int) :: code
    code = c_train_steps(trainer, int(updates, c_int64_t))
  end function

  function rondo_train_for(trainer, seconds) result(code)
    type(c_ptr), intent(in) :: trainer
    real(c_double), intent(in) :: seconds
    integer(c_int) :: code
    code = c_train_for(trainer, seconds)
  end function

  function rondo_updates(trainer) result(updates)
    type(c_ptr), intent(in) :: trainer
    integer(c_int64_t) :: updates
    updates = c_updates(trainer)
  end function

  ! The output named `output` for a batch, as float32.
  function rondo_infer(trainer, inputs, output, values) result(code)
    type(c_ptr), intent(in) :: trainer
    type(rondo_tensor_type), intent(in), target :: inputs(:)
    character(len=*), intent(in) :: output
    real(c_float), intent(out), target, contiguous :: values(:)
    integer(c_size_t) :: needed
    integer(c_int) :: code
    code = c_infer(trainer, arrays_of(inputs), int(size(inputs), c_int64_t), terminated(output), &
                   c_loc(values), int(size(values), c_size_t) * 4_c_size_t, needed)
  end function

  function rondo_save(trainer) result(code)
    type(c_ptr), intent(in) :: trainer
    integer(c_int) :: code
    code = c_save(trainer)
  end function

  function rondo_last_error() result(text)
    character(len=:), allocatable :: text
    character(kind=c_char), pointer :: chars(:)
    type(c_ptr) :: from
    integer(c_size_t) :: length, i
    from = c_last_error()
    length = c_strlen(from)
    call c_f_pointer(from, chars, [length])
    allocate (character(len=length) :: text)
    do i = 1, length
      text(i:i) = chars(i)
    end do
  end function

  subroutine rondo_close(trainer)
    type(c_ptr), intent(inout) :: trainer
    call c_close(trainer)
    trainer = c_null_ptr
  end subroutine

end module
