"""What looks like a secret does not leave the machine."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bot.redaction import MASK, mask

SHAPED = {
    "bot token": "424242424:" + "Aa0_-" * 7,
    "OpenAI": "sk-proj-" + "Aa0_-" * 8,
    "Anthropic": "sk-ant-api03-" + "Aa0_-" * 8,
    "Stripe": "sk_live_" + "Aa0" * 8,
    "GitHub": "ghp_" + "Aa0" * 12,
    "GitHub, fine-grained": "github_pat_" + "Aa0_" * 12,
    "GitLab": "glpat-" + "Aa0_-" * 4,
    "Slack": "xoxb-" + "12345-" * 4,
    "AWS": "AKIA" + "A1B2" * 4,
    "Google": "AIza" + "Aa0_-" * 7,
    "Hugging Face": "hf_" + "Aa0" * 10,
    "npm": "npm_" + "Aa0" * 12,
    "PyPI": "pypi-" + "Aa0_-" * 10,
    "JSON web token": "eyJhbGciOiJI." + "eyJzdWIiOiIx." + "Aa0_-" * 5,
    "private key": "-----BEGIN RSA PRIVATE KEY-----\nMIIE\n-----END RSA PRIVATE KEY-----",
    "private key, cut": "-----BEGIN PRIVATE KEY-----\nMIIEvQIBADANBg",
}


@pytest.mark.parametrize("secret", SHAPED.values(), ids=SHAPED)
@pytest.mark.parametrize(
    "around", ["{}", "in words {} and on", '{{"argument":"{}"}}', "https://host/bot{}/getMe"]
)
def test_a_secret_is_known_by_its_shape(secret: str, around: str) -> None:
    masked = mask(around.format(secret))
    assert secret not in masked
    assert secret[10:20] not in masked
    assert MASK in masked


@pytest.mark.parametrize(
    ("text", "masked"),
    [
        ("TOKEN=abcdefgh", "TOKEN=•••"),
        ("LOOPWARDEN_TOKEN: abcdefgh", "LOOPWARDEN_TOKEN: •••"),
        ("export DB_PASSWORD='hunter22' && x", "export DB_PASSWORD='•••' && x"),
        ('{"password":"hunter22","user":"me"}', '{"password":"•••","user":"me"}'),
        (r'"{\"api_key\": \"abcdefgh\"}"', r'"{\"api_key\": \"•••\"}"'),
        ("?access_token=abcdefgh&page=2", "?access_token=•••&page=2"),
        ("client-secret = abcdefgh", "client-secret = •••"),
        ("passphrase: abcdefgh", "passphrase: •••"),
        ("Authorization: Bearer abcdefgh.ijk", "Authorization: Bearer •••"),
        ("-H 'authorization: basic dXNlcjpwYXNz'", "-H 'authorization: basic •••'"),
        ("postgres://me:hunter22@db:5432/x", "postgres://me:•••@db:5432/x"),
        ("https://:hunter22@host/", "https://:•••@host/"),
        ("SECRET_KEY=abcdefgh", "SECRET_KEY=•••"),
        ("PRIVATE_KEY: abcdefgh", "PRIVATE_KEY: •••"),
        ("export ENCRYPTION_KEY=abcdefgh", "export ENCRYPTION_KEY=•••"),
        ('"pwd": "hunter22"', '"pwd": "•••"'),
        ("password = 'two words'", "password = '•••'"),
        ('password = "two words"', 'password = "•••"'),
        ("mysql --password hunter22 -h db", "mysql --password ••• -h db"),
        ("tool --api-key abcdefgh", "tool --api-key •••"),
        ("curl -u me:hunter22 https://host", "curl -u me:••• https://host"),
        ("sshpass -p hunter22 ssh host", "sshpass -p ••• ssh host"),
        ("Authorization: token abcdefgh", "Authorization: token •••"),
        ("Cookie: session=abcdefgh", "Cookie: •••"),
    ],
)
def test_a_secret_is_known_by_what_stands_before_it(text: str, masked: str) -> None:
    assert mask(text) == masked


@pytest.mark.parametrize(
    "text",
    [
        "read_file notes/todo.md",
        "tokens 850, 17 calls in 2 min",
        "process 424242 has exited, after SIGTERM, 0.1 s",
        "at 12:30:59 in chat -1001234567890:17",
        "https://example.org:8443/path",
        '{"path":"src/tokenizer.py","line":17}',
        "the secret garden",
        "",
    ],
)
def test_what_is_no_secret_is_left_alone(text: str) -> None:
    assert mask(text) == text


@given(st.text())
def test_masking_twice_is_masking_once(text: str) -> None:
    assert mask(mask(text)) == mask(text)
