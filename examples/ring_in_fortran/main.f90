! The same as examples/ring_in_c, in Fortran: ring_in_fortran run.toml
program ring_in_fortran
  use, intrinsic :: iso_c_binding
  use rondo
  implicit none
  type(c_ptr) :: trainer
  integer(c_int) :: code
  integer :: i, right
  real(c_float), target :: x(2), inputs(2, 100), logits(200)
  integer(c_int64_t), target :: label(1), labels(100)
  real :: random(2)
  character(len=256) :: toml

  call get_command_argument(1, toml)
  if (rondo_open(toml, trainer) /= RONDO_OK) call fail()
  code = RONDO_OK
  do while (code == RONDO_OK)
    do i = 1, 100
      call simulate(x, label(1))
      if (rondo_push(trainer, [rondo_tensor("x", x), &
                               rondo_tensor("label", label, shape=[integer ::])]) < RONDO_OK) call fail()
    end do
    code = rondo_train_steps(trainer, 10)
  end do
  if (code /= RONDO_DONE) call fail()
  if (rondo_save(trainer) /= RONDO_OK) call fail()
  do i = 1, 100
    call simulate(inputs(:, i), labels(i))
  end do
  code = infer_all(inputs)
  if (code /= RONDO_OK) call fail()
  right = 0
  do i = 1, 100
    if ((logits(2 * i) > logits(2 * i - 1)) .eqv. (labels(i) == 1)) right = right + 1
  end do
  print '(i0, a, i0, a)', rondo_updates(trainer), " updates, ", right, " of 100 right"
  call rondo_close(trainer)
  if (right <= 90) error stop 1

contains

  subroutine simulate(values, larger)
    real(c_float), intent(out) :: values(2)
    integer(c_int64_t), intent(out) :: larger
    call random_number(random)
    values = 20 + 1000 * random
    larger = merge(1, 0, values(1) > values(2))
  end subroutine

  ! An array of rank 2 is given as one of rank 1 with its shape.
  function infer_all(values) result(status)
    real(c_float), intent(in), target, contiguous :: values(:, :)
    real(c_float), pointer :: flat(:)
    integer(c_int) :: status
    flat(1:size(values)) => values
    status = rondo_infer(trainer, [rondo_tensor("x", flat, shape=shape(values)), &
                                   rondo_tensor("label", labels)], "logits", logits)
  end function

  subroutine fail()
    print '(a)', rondo_last_error()
    error stop 1
  end subroutine

end program
