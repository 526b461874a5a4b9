"""Claims: what a paper found, what our miniature finds, and the condition under which we say that it holds.

A notebook registers each claim where it is shown (`claim`); `collect` reads them back from executed notebooks, and
`table` sets them as one ledger. What each says, measures and requires stands in ``conditions.json`` as well, which a
test compares with the notebooks (`course claims --accept` renews it); ``course claims --seeds`` repeats claims at other
seeds.
"""

from .card import MIME, ClaimDoesNotHold, claim
from .ledger import collect, table

__all__ = ["MIME", "ClaimDoesNotHold", "claim", "collect", "table"]
