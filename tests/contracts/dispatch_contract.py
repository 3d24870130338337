"""The whole contract of a dispatch. An adapter's test class inherits it and gives a `Scene`."""

from __future__ import annotations

from tests.contracts.dispatch_holding_contract import HoldingContract
from tests.contracts.dispatch_offers_contract import OffersContract
from tests.contracts.dispatch_robust_contract import RobustContract
from tests.contracts.dispatch_sharing_contract import SharingContract
from tests.contracts.dispatch_taking_contract import TakingContract
from tests.contracts.dispatch_words_contract import WordsContract


class DispatchContract(OffersContract, TakingContract, SharingContract, HoldingContract, WordsContract, RobustContract):
    pass
