"""What every control store keeps to. An adapter's test class inherits this and says how the store is opened."""

from __future__ import annotations

from dataclasses import replace

import pytest

from penstock.kernel.errors import Refused
from penstock.ports.control import ControlStore, Scope
from tests.cases import cases
from tests.contracts.control_scenes import ANY_TEXT, NIGHTLY, PUSHED, ControlScenes, at_once, filed
from tests.contracts.control_triggers_contract import (
    AlertsContract,
    HooksContract,
    LossesContract,
    SchedulesContract,
    SlotsContract,
)


class CatalogContract(ControlScenes):
    def test_a_document_is_there_as_it_was_filed(self, control: ControlStore, other: ControlStore) -> None:
        sources = {"lib/a.yaml": "joblet: a", "ä.yaml": ANY_TEXT}
        new = control.file("sales/orders", ANY_TEXT, "job", "abc", sources, "ann")
        assert (new.path, new.version, new.digest, new.kind) == ("sales/orders", 1, "abc", "job")
        assert (new.text, new.sources, new.created_by) == (ANY_TEXT, sources, "ann")
        for store in (control, other):
            assert store.document("sales/orders") == new
            assert store.document("sales/orders", 1) == new

    def test_what_was_never_filed_is_not_there(self, control: ControlStore) -> None:
        filed(control)
        assert control.document("sales") is None
        assert control.document("sales/orders", 2) is None
        assert control.document("sales/orders", 0) is None
        assert control.document("sales/orders", 2**80) is None
        assert control.document("\ud800") is None
        assert control.versions("sales") == []

    def test_the_same_content_again_is_the_same_version(self, control: ControlStore, other: ControlStore) -> None:
        first = filed(control, by="ann")
        self.pass_time(10)
        assert filed(other, by="bob") == first
        assert len(control.versions("sales/orders")) == 1

    def test_other_content_is_the_next_version_and_the_old_one_stays(self, control: ControlStore) -> None:
        first = filed(control, text="one")
        self.pass_time(10)
        second = filed(control, text="two")
        assert second.version == 2
        assert second.created_at == pytest.approx(first.created_at + 10, abs=60)
        assert control.document("sales/orders") == second
        assert control.document("sales/orders", 1) == first

    def test_other_sources_are_other_content(self, control: ControlStore) -> None:
        for number, sources in enumerate([{}, {"a": "1"}, {"a": "2"}, {"b": "2"}], start=1):
            for _ in range(2):
                assert control.file("p", "text", "job", "d", sources).version == number

    def test_going_back_to_an_older_text_makes_it_the_newest(self, control: ControlStore) -> None:
        assert [filed(control, text=text).version for text in ("one", "two", "one")] == [1, 2, 3]
        newest = control.document("sales/orders")
        assert newest is not None
        assert newest.text == "one"

    def test_versions_are_listed_without_their_texts(self, control: ControlStore) -> None:
        made = [filed(control, text=text, by="ann") for text in ("one", "two")]
        assert control.versions("sales/orders") == [replace(one, text="", sources={}) for one in made]

    def test_the_catalog_lists_the_newest_of_each_by_path(self, control: ControlStore) -> None:
        for path, text in (("b", "1"), ("a/z", "1"), ("a/B", "1"), ("é", "1"), ("b", "2"), ("a", "1")):
            filed(control, path, text)
        listed = control.documents()
        assert [(one.path, one.version, one.text) for one in listed] == [
            ("a", 1, ""),
            ("a/B", 1, ""),
            ("a/z", 1, ""),
            ("b", 2, ""),
            ("é", 1, ""),
        ]
        assert [one.path for one in control.documents("a/")] == ["a/B", "a/z"]
        assert [one.path for one in control.documents(limit=2)] == ["a", "a/B"]
        assert [one.path for one in control.documents(limit=2, after="a/B")] == ["a/z", "b"]
        assert [one.path for one in control.documents("a/", after="a/B")] == ["a/z"]
        assert control.documents("zzz") == control.documents(limit=0) == control.documents(limit=-1) == []

    def test_a_prefix_is_a_text_and_not_a_pattern(self, control: ControlStore) -> None:
        for path in ("a%b", "a_b", "axb", "a*b", "a[x]b"):
            filed(control, path)
        assert [one.path for one in control.documents("a%")] == ["a%b"]
        assert [one.path for one in control.documents("a_")] == ["a_b"]
        assert [one.path for one in control.documents("a*")] == ["a*b"]

    def test_what_is_taken_out_is_gone_with_all_its_versions(self, control: ControlStore, other: ControlStore) -> None:
        filed(control, text="one")
        filed(control, text="two")
        filed(control, "kept")
        assert other.unfile("sales/orders")
        assert not other.unfile("sales/orders")
        assert not other.unfile("\ud800")
        assert control.document("sales/orders") is None
        assert control.document("sales/orders", 1) is None
        assert control.versions("sales/orders") == []
        assert [one.path for one in control.documents()] == ["kept"]

    def test_a_version_number_is_never_given_twice(self, control: ControlStore) -> None:
        filed(control, text="one")
        filed(control, text="two")
        control.unfile("sales/orders")
        assert filed(control, text="two").version == 3
        assert control.document("sales/orders", 2) is None
        assert [one.version for one in control.versions("sales/orders")] == [3]

    def test_those_who_file_at_once_get_versions_of_their_own(self, control: ControlStore, other: ControlStore) -> None:
        made = at_once(8, lambda number: filed((control, other)[number % 2], text=f"text {number}"))
        assert sorted(one.version for one in made) == list(range(1, 9))
        assert control.versions("sales/orders")[-1].version == 8

    def test_those_who_file_the_same_at_once_get_one_version(self, control: ControlStore, other: ControlStore) -> None:
        made = at_once(8, lambda number: filed((control, other)[number % 2]))
        assert {one.version for one in made} == {1}
        assert len(control.versions("sales/orders")) == 1

    @cases("path", ["", "a\nb", "a\u0000", "a\u007f", "a\u0085", "\ud800", "x" * 1001])
    def test_a_path_that_cannot_be_a_name_is_refused(self, control: ControlStore, path: str) -> None:
        with pytest.raises(Refused):
            filed(control, path)
        assert control.documents() == []

    def test_text_that_is_none_is_refused(self, control: ControlStore) -> None:
        with pytest.raises(Refused, match="at 4"):
            filed(control, text="half\ud800")
        with pytest.raises(Refused):
            control.file("p", "t", "job", "d", {"a": "\udfff"})
        assert control.documents() == []


class TokensContract(ControlScenes):
    def test_a_secret_says_whose_it_is(self, control: ControlStore, other: ControlStore) -> None:
        ann, of_ann = control.add_token("ann", Scope.ADMIN)
        bob, of_bob = control.add_token("bob 🚰", Scope.READ)
        assert (ann.name, ann.scope, ann.expires_at, ann.last_used_at) == ("ann", Scope.ADMIN, None, None)
        assert ann.id != bob.id
        for store in (control, other):
            for token, secret in ((ann, of_ann), (bob, of_bob)):
                found = store.token(secret)
                assert found is not None
                assert replace(found, last_used_at=None) == token

    def test_secrets_are_long_and_never_the_same(self, control: ControlStore) -> None:
        made = [control.add_token("same", Scope.RUN)[1] for _ in range(20)]
        assert len(set(made)) == 20
        assert all(secret.startswith("pk_") and len(secret) == 3 + 43 for secret in made)

    def test_another_secret_is_nobodys(self, control: ControlStore) -> None:
        token, secret = control.add_token("ann", Scope.RUN)
        for wrong in ("", "pk_", secret[:-1], secret + "x", secret.upper(), f" {secret}", token.id, "\ud800", "\u0000"):
            assert control.token(wrong) is None

    def test_an_expired_token_is_nobodys_but_is_listed(self, control: ControlStore) -> None:
        now = control.add_token("now", Scope.READ)[0].created_at
        token, secret = control.add_token("ann", Scope.RUN, expires_at=now + 3600)
        assert token.expires_at == now + 3600
        assert control.token(secret) is not None
        self.pass_time(7200)
        assert control.token(secret) is None
        assert [one.name for one in control.tokens()] == ["now", "ann"]

    def test_the_use_of_a_token_is_kept_to_the_minute(self, control: ControlStore, other: ControlStore) -> None:
        token, secret = control.add_token("ann", Scope.RUN)
        assert control.tokens() == [token]
        used = control.token(secret)
        assert used is not None
        assert used.last_used_at is not None
        assert other.tokens() == [used]
        self.pass_time(30)
        assert other.token(secret) == used
        assert control.tokens() == [used]
        self.pass_time(31)
        again = other.token(secret)
        assert again is not None
        assert again.last_used_at is not None
        assert again.last_used_at - used.last_used_at >= 60
        assert control.tokens() == [again]

    def test_a_session_stands_for_its_token_at_every_store_until_that_is_revoked(
        self, control: ControlStore, other: ControlStore
    ) -> None:
        token, secret = control.add_token("ann", Scope.RUN)
        session = control.session(secret)
        assert session is not None
        assert secret not in session
        assert other.session(secret) == session
        for store in (control, other):
            found = store.token_of_session(session)
            assert found is not None
            assert replace(found, last_used_at=None) == token
            # One is not taken for the other.
            assert (store.token(session), store.token_of_session(secret)) == (None, None)
        for wrong in ("", session[:-1], session + "0", token.id, "\ud800", "\u0000"):
            assert (control.token_of_session(wrong), control.session(wrong)) == (None, None)
        control.revoke(token.id)
        assert (other.token_of_session(session), other.session(secret)) == (None, None)

    def test_a_session_ends_when_its_token_expires(self, control: ControlStore) -> None:
        now = control.add_token("now", Scope.READ)[0].created_at
        _, secret = control.add_token("ann", Scope.RUN, expires_at=now + 3600)
        session = control.session(secret)
        assert session is not None
        assert control.token_of_session(session) is not None
        self.pass_time(3601)
        assert control.token_of_session(session) is None

    def test_tokens_are_listed_the_oldest_first(self, control: ControlStore) -> None:
        made = [control.add_token(name, Scope.READ)[0] for name in ("c", "a", "b", "a")]
        assert control.tokens() == made

    def test_a_revoked_token_is_nobodys_at_once(self, control: ControlStore, other: ControlStore) -> None:
        token, secret = control.add_token("ann", Scope.RUN)
        kept, of_kept = control.add_token("bob", Scope.RUN)
        assert other.revoke(token.id)
        assert control.token(secret) is None
        assert control.token(of_kept) is not None
        assert not control.revoke(token.id)
        assert not control.revoke("")
        assert [one.id for one in control.tokens()] == [kept.id]

    @pytest.mark.parametrize("name", ["", "a\nb", "\udc00"])
    def test_a_token_without_a_proper_name_is_refused(self, control: ControlStore, name: str) -> None:
        with pytest.raises(Refused):
            control.add_token(name, Scope.READ)
        assert control.tokens() == []


class ControlContract(
    CatalogContract, TokensContract, SchedulesContract, SlotsContract, AlertsContract, HooksContract, LossesContract
):
    def test_what_was_kept_outlives_the_one_who_kept_it(self) -> None:
        with self.opened() as control:
            filed(control)
            _, secret = control.add_token("ann", Scope.RUN)
            control.put_schedule(NIGHTLY)
            control.put_hook(replace(PUSHED, secret="one"))
        with self.opened() as control:
            assert control.document("sales/orders") is not None
            assert control.token(secret) is not None
            assert control.schedules() == [NIGHTLY]
            assert control.hook("pushed") == replace(PUSHED, secret="one")

    def test_a_closed_store_refuses(self) -> None:
        control = self.open_control()
        control.close()
        control.close()
        for ask in (control.documents, control.tokens, control.schedules, control.hooks):
            with pytest.raises(Refused, match="closed"):
                ask()
        with pytest.raises(Refused, match="closed"):
            control.put_hook(PUSHED)
        with pytest.raises(Refused, match="closed"):
            filed(control)

    def test_any_thread_may_ask(self, control: ControlStore) -> None:
        def busy(number: int) -> int:
            for turn in range(5):
                filed(control, f"p{number}", f"text {turn}")
                control.put_schedule(replace(NIGHTLY, name=f"s{number}"))
                control.add_token(f"t{number}", Scope.READ)
                control.schedules()
            return len(control.versions(f"p{number}"))

        assert at_once(6, busy) == [5] * 6
        assert len(control.documents()) == len(control.schedules()) == 6
        assert len(control.tokens()) == 30
