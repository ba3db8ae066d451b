import collections
import pytest
from tests.scraping import test_journal_machine as m
@pytest.mark.django_db(transaction=True)
def test_count():
    counts = collections.Counter()
    for name in ("_finish","_note_finish","_note_rescue","_note_claim","_note_failure","_fail","_survives","i2_every_open_task_is_scheduled_or_leased"):
        orig = getattr(m.JournalMachine, name)
        def wrap(self, *a, _o=orig, _n=name, **k):
            counts[_n]+=1
            return _o(self,*a,**k)
        if name[0]=="_": setattr(m.JournalMachine, name, wrap)
    m.test_holds_in_every_order_of_events()
    print(counts)
