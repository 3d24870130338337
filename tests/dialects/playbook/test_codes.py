"""Every code is documented, and its examples show it: the bad one gives it, the good one does not."""

from penstock.dialects.diagnostics import has_page
from penstock.expr.check import CODES as EXPRESSION_CODES
from tests.cases import cases
from tests.dialects.playbook.support import TABLE, codes, errors, whole

# Codes that depend on what is around the document: other files, installed plug-ins.
_WITHOUT_EXAMPLE = {"P0514", "P0619", "P0620", "P0621", "P0622"}


def test_every_code_of_the_table_is_registered_with_a_reason_and_a_remedy():
    for code, doc in TABLE.items():
        assert has_page(code)
        assert doc.title
        assert doc.why.endswith(".")
        assert doc.fix.endswith(".")
        assert code in _WITHOUT_EXAMPLE or (doc.bad and doc.good), code


def test_every_code_of_the_expression_language_has_a_page():
    assert set(EXPRESSION_CODES) <= set(TABLE)


@cases("code", sorted(set(TABLE) - _WITHOUT_EXAMPLE))
def test_the_bad_example_of_a_code_gives_it(code):
    assert code in codes(whole(TABLE[code].bad))


@cases("code", sorted(set(TABLE) - _WITHOUT_EXAMPLE))
def test_the_good_example_of_a_code_does_not_give_it_and_has_no_error(code):
    document = whole(TABLE[code].good)
    assert code not in codes(document)
    assert errors(document) == []
