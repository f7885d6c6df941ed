"""The reference cases of ../shared/cases/sched, run through `avrt.drivers.simulate`.

One time unit of a case is 1 ns, so every value is an exact integer.
"""
