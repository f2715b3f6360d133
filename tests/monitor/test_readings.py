"""A reading as a logger gets it."""

from epigrok.monitor import SEEN, MonitorReading, SetReading


def test_flat_names_have_the_set_first_and_unknown_numbers_are_left_out() -> None:
    held_out = SetReading(state="memorising", tolerance_ratio=0.12, num_rows=256)
    sets = {SEEN: SetReading(tolerance=0.5), "held out": held_out}
    flat = MonitorReading(step=3, sets=sets, seconds=0.01).flat()
    assert flat == {
        "monitor/seconds": 0.01,
        "seen/tolerance": 0.5,
        "seen/num_rows": 0,
        "held out/state": "memorising",
        "held out/tolerance_ratio": 0.12,
        "held out/num_rows": 256,
    }


def test_rows_name_their_set_and_step() -> None:
    reading = MonitorReading(step=7, sets={SEEN: SetReading()}, train_loss=0.5)
    (row,) = reading.rows()
    assert (row["step"], row["set"], row["train_loss"]) == (7, SEEN, 0.5)
    assert reading[SEEN] == SetReading()
