"""Every code is documented, and its examples show it: the bad one gives it, the good one does not."""

from penstock.dialects.diagnostics import has_page
from penstock.dialects.job.reader import NAMES
from tests.cases import cases
from tests.dialects.job.support import TABLE, codes, errors

# Codes that depend on what is around the document: other files, installed plug-ins.
_WITHOUT_EXAMPLE = {"J0204", "J0318", "J0504", "J0507", "J0508", "J0706", "J0721", "J0903", "J0904", "J0905"}


def test_every_code_of_the_table_is_registered_with_a_reason_and_a_remedy():
    for code, doc in TABLE.items():
        assert has_page(code)
        assert doc.title
        assert doc.why.endswith(".")
        assert doc.fix.endswith(".")
        assert code in _WITHOUT_EXAMPLE or (doc.bad and doc.good), code


def test_every_name_has_a_code_of_its_own_in_the_table():
    assert len(set(NAMES.values())) == len(NAMES)
    assert set(NAMES.values()) <= set(TABLE)


@cases("code", sorted(set(TABLE) - _WITHOUT_EXAMPLE))
def test_the_bad_example_of_a_code_gives_it(code):
    assert code in codes(TABLE[code].bad)


@cases("code", sorted(set(TABLE) - _WITHOUT_EXAMPLE))
def test_the_good_example_of_a_code_does_not_give_it_and_has_no_error(code):
    assert code not in codes(TABLE[code].good)
    assert errors(TABLE[code].good) == []
