"""The requirement marker and its table."""

import pytest

from scripts import requirements


class TestDocument:
    def test_has_every_family_complete(self):
        families = {"FR": 28, "NFR": 25, "EC": 7, "DM": 11, "SO": 16, "FS": 22, "ZT": 12, "BX": 22}
        known = requirements.known_ids()
        for family, count in families.items():
            width = 3 if family in {"FR", "NFR"} else 0
            assert {f"{family}-{number:0{width}}" for number in range(1, count + 1)} <= known
        assert {f"US{story}.{case}" for story in range(1, 6) for case in range(1, 5)} <= known

    def test_tests_name_only_known_ids(self):
        assert set(requirements.ids_in_tests()) <= requirements.known_ids()


class TestVerdict:
    @pytest.mark.parametrize(
        ("outcomes", "has_test", "verdict"),
        [
            ({}, False, "no test"),
            ({}, True, "not run"),
            ({"a": "skipped"}, True, "not run"),
            ({"a": "passed", "b": "skipped"}, True, "proved"),
            ({"a": "passed", "b": "failed"}, True, "failed"),
        ],
    )
    def test_follows_the_worst_result(self, outcomes, has_test, verdict):
        assert requirements.state_of(outcomes, has_test=has_test) == verdict

    @pytest.mark.parametrize(
        ("name", "counts"),
        [
            ("tests/victoryline/test_requirements.py::TestVerdict::test_follows_the_worst_result[a-b] [SQLite]", True),
            ("tests/victoryline/test_requirements.py::TestVerdict::test_that_was_renamed [SQLite]", False),
            ("tests/victoryline/test_that_was_moved.py::test_it [PostgreSQL]", False),
        ],
    )
    def test_ignores_results_of_tests_that_no_longer_exist(self, name, counts):
        assert requirements.exists(name) is counts
