"""Takes secrets out of text before it leaves the machine or reaches a log."""

import re
from typing import Final

MASK: Final = "•••"

_SHAPES: Final = (
    r"\d{6,}:[A-Za-z0-9_-]{30,}",  # a bot token, also inside a URL
    r"sk-(?:ant-|proj-|or-|live_|test_)?[A-Za-z0-9_-]{16,}",  # OpenAI, Anthropic, OpenRouter
    r"(?:sk|pk|rk)_(?:live|test)_[A-Za-z0-9]{10,}",  # Stripe
    r"gh[pousr]_[A-Za-z0-9]{20,}|github_pat_[A-Za-z0-9_]{20,}",
    r"glpat-[A-Za-z0-9_-]{16,}",
    r"xox[abeoprs]-[A-Za-z0-9-]{10,}",  # Slack
    r"(?:AKIA|ASIA)[A-Z0-9]{16}",  # AWS
    r"AIza[A-Za-z0-9_-]{30,}",  # Google
    r"hf_[A-Za-z0-9]{20,}",
    r"npm_[A-Za-z0-9]{30,}|pypi-[A-Za-z0-9_-]{30,}",
    r"eyJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]*",  # a JSON web token
    r"-----BEGIN [A-Z ]*PRIVATE KEY-----[\s\S]*?(?:-----END [A-Z ]*PRIVATE KEY-----|\Z)",
)
_SHAPED: Final = re.compile("|".join(f"(?:{shape})" for shape in _SHAPES))

# What follows a name that says it is secret: TOKEN=..., "password": "...", --api-key ..., Authorization: Bearer ...,
# user:pass@host, curl -u user:pass.
_TELLING_NAME: Final = r"""[a-z0-9_.-]{0,40}(?:
    passw(?:or)?d | pwd | passphrase | secret | token | credentials? | cookie
    | (?:api|access|secret|private|encryption|signing|auth|ssh)[_-]?key )"""
_NAMED: Final = re.compile(
    rf"""(?ix)
    ( {_TELLING_NAME} (?:\\{{0,8}}["'])? \s* [=:] \s* \\{{0,8}}" ) [^"\\\n]{{4,}}
    | ( {_TELLING_NAME} (?:\\{{0,8}}["'])? \s* [=:] \s* \\{{0,8}}' ) [^'\\\n]{{4,}}
    | ( {_TELLING_NAME} (?:\\{{0,8}}["'])? \s* [=:] \s* ) (?!\s) [^\s"'\\,;&}}{{)]{{4,}}
    | ( --{_TELLING_NAME} \s+ ["']? ) (?!-) [^\s"']{{4,}}
    | ( \bsshpass\s+-p\s* ["']? ) [^\s"']{{4,}}
    | ( \s-u\s+["']?[^\s:"']{{1,100}}: ) [^\s"']{{4,}}
    | ( \b(?:bearer|basic)\s+ ) [a-z0-9._~+/=-]{{8,}}
    | ( \bauthorization["']?\s*[:=]\s*["']?(?:token|apikey|digest)\s+ ) [^\s"']{{4,}}
    | ( ://[^\s/:@]{{0,200}}: ) [^\s/@]{{1,200}} (?=@)
    """
)


def mask(text: str) -> str:
    """Return the text with everything that looks like a secret replaced by `MASK`."""
    return _NAMED.sub(_keep_name, _SHAPED.sub(MASK, text))


def _keep_name(match: re.Match[str]) -> str:
    name = next(group for group in match.groups() if group is not None)
    return f"{name}{MASK}"
