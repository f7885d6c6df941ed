"""How the process is set up for a run, and put back."""

import gc
import signal
import sys
import threading

import pytest
import threadpoolctl
import torch

from avrt.exec.process import Interrupts, frozen_garbage, quick_switching, set_threads


@pytest.fixture
def thawed():
    """A heap that nobody has frozen."""
    count = gc.get_freeze_count()
    gc.unfreeze()
    yield
    if count:
        gc.freeze()


def test_one_thread_count_for_every_library():
    before = torch.get_num_threads()
    set_threads(1)
    assert torch.get_num_threads() == 1
    assert {pool["num_threads"] for pool in threadpoolctl.threadpool_info()} == {1}
    set_threads(before)


@pytest.mark.slow  # a whole collection of the session's heap
@pytest.mark.usefixtures("thawed")
def test_what_is_alive_is_kept_from_the_collector_until_the_end():
    with frozen_garbage():
        assert gc.get_freeze_count() > 0
    assert gc.get_freeze_count() == 0


@pytest.mark.usefixtures("settled")
def test_a_program_that_froze_its_objects_keeps_them_frozen():
    count = gc.get_freeze_count()
    assert count
    with frozen_garbage():
        pass
    assert gc.get_freeze_count() > 0


def interrupt():
    signal.raise_signal(signal.SIGINT)


def test_an_interrupt_waits_for_a_point_where_it_is_allowed():
    done = []

    def run():
        with Interrupts() as interrupts:
            interrupt()
            done.append("a step")
            with interrupts.allowed():
                done.append("never")

    with pytest.raises(KeyboardInterrupt):
        run()
    assert done == ["a step"]


def test_an_interrupt_where_it_is_allowed_raises_at_once():
    done = []

    def run():
        with Interrupts() as interrupts, interrupts.allowed():
            interrupt()
            done.append("never")

    with pytest.raises(KeyboardInterrupt):
        run()
    assert done == []


def test_a_second_interrupt_does_not_wait():
    done = []

    def run():
        with Interrupts():
            interrupt()
            done.append("once")
            interrupt()
            done.append("never")

    with pytest.raises(KeyboardInterrupt):
        run()
    assert done == ["once"]


def test_an_interrupt_that_found_no_point_is_not_lost():
    def run():
        with Interrupts():
            interrupt()

    with pytest.raises(KeyboardInterrupt):
        run()


def test_another_error_is_not_replaced_by_the_interrupt():
    def run():
        with Interrupts():
            interrupt()
            raise ValueError("mine")

    with pytest.raises(ValueError, match="mine"):
        run()


def test_the_handler_is_put_back_whatever_happens():
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
    with Interrupts():
        assert signal.getsignal(signal.SIGINT) is not signal.default_int_handler
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


def test_a_program_that_handles_interrupts_itself_goes_on_doing_so():
    seen = []
    before = signal.signal(signal.SIGINT, lambda *_: seen.append(1))
    try:
        with Interrupts():
            interrupt()
    finally:
        signal.signal(signal.SIGINT, before)
    assert seen == [1]


def test_outside_the_main_thread_nothing_changes():
    seen = []

    def run():
        with Interrupts() as interrupts, interrupts.allowed():
            seen.append(signal.getsignal(signal.SIGINT))

    thread = threading.Thread(target=run)
    thread.start()
    thread.join()
    assert seen == [signal.default_int_handler]


def test_threads_switch_quickly_only_within():
    before = sys.getswitchinterval()

    def fail():
        with quick_switching():
            assert sys.getswitchinterval() == pytest.approx(0.0005)
            raise ValueError("mine")

    with pytest.raises(ValueError, match="mine"):
        fail()
    assert sys.getswitchinterval() == before
