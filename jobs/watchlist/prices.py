"""`[prices]`: what the models' tokens cost."""

import re
from typing import Final

from jobs.thrash.price import NO_PRICES, Price, Prices
from jobs.watchlist.entries import check_name, convert, table_of, type_of
from jobs.watchlist.error import WatchlistError, key_of

_DEAREST: Final = 100_000_000
"""Money for a million tokens: more than any model takes in any currency."""
_CURRENCY: Final = re.compile(r"[A-Z]{3}")


def parse_prices(entries: object) -> Prices:
    models = dict(table_of(entries, "prices"))
    currency = models.pop("currency", NO_PRICES.currency)
    return Prices(
        models={model: _price(model, entry) for model, entry in models.items()}, currency=_currency(currency)
    )


def _price(model: str, entry: object) -> Price:
    place = f"prices.{key_of(model)}"
    check_name(model, place)
    table = table_of(entry, place)
    if table.keys().isdisjoint(Price.__struct_fields__) and any(isinstance(v, dict) for v in table.values()):
        raise WatchlistError(f"{place}: a name with a dot in it must stand in quotes")
    price = convert(table, Price, place)
    for name in Price.__struct_fields__:
        _check_price(getattr(price, name), f"{place}.{name}")
    return price


def _currency(code: object) -> str:
    if not isinstance(code, str):
        raise WatchlistError(f"prices.currency: expected str, got {type_of(code)}")
    if not _CURRENCY.fullmatch(code):
        raise WatchlistError("prices.currency: must be three capital letters, such as USD")
    return code


def _check_price(price: float | None, place: str) -> None:
    # Written so that not-a-number fails, too.
    if price is not None and not 0 <= price <= _DEAREST:
        raise WatchlistError(f"{place}: must be from 0 to {_DEAREST:,}, money for a million tokens")
