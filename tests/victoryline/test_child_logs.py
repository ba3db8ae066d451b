"""Lines of a child's output that are shown on the operator's terminal."""

import pytest

from victoryline.supervisor import for_terminal


class TestTerminal:
    @pytest.mark.parametrize(
        ("line", "shown"),
        [
            ('{"level": "INFO", "event": "fine"}', None),
            ('{"level": "WARN", "event": "slow", "match_id": "m1", "secret": "x"}', "WARN  slow (match_id=m1)"),
            ('{"level": "CRITICAL", "event": "gone"}', "CRITICAL gone"),
            ("[INFO] Listening at: http://127.0.0.1:8000", None),
            ("[ERROR] Unexpected exit from worker-1", "[ERROR] Unexpected exit from worker-1"),
            ("[WARNING] Many threads. If intentional, you can safely ignore this message.", None),
            ("ValueError: no such over", "ValueError: no such over"),
            ("42", None),
            ("", None),
        ],
    )
    def test_shows_trouble_only(self, line, shown):
        assert for_terminal(line) == shown
