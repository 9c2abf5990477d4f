"""Which addresses webhooks may have: whole kinds of them, with Python's registry as a witness."""

from __future__ import annotations

from ipaddress import IPv4Address, IPv6Address, ip_address

import pytest
from hypothesis import given
from hypothesis import strategies as st

from halldetect.errors import InputError
from halldetect.settings import load_settings
from halldetect.webhook_targets import (
    AllowedTargets,
    is_public,
    loggable_target,
    parse_target,
)

NOTHING = AllowedTargets()
# What leads into a private network, or to no single host, by kinds; each with its ends.
NOT_PUBLIC = {
    "unspecified": ["0.0.0.0", "0.255.255.255", "::"],
    "loopback": ["127.0.0.1", "127.255.255.255", "::1"],
    "private": ["10.0.0.0", "10.255.255.255", "172.16.0.0", "172.31.255.255"],
    "private, the last of them": ["192.168.0.0", "192.168.255.255"],
    "carrier's NAT": ["100.64.0.0", "100.100.100.200", "100.127.255.255"],
    "link-local, and clouds' metadata": ["169.254.0.1", "169.254.169.254", "fe80::1", "febf::1"],
    "clouds' metadata": ["fd00:ec2::254", "168.63.129.16"],
    "unique local": ["fc00::", "fdff:ffff:ffff:ffff:ffff:ffff:ffff:ffff"],
    "site-local": ["fec0::1"],
    "protocol assignments": ["192.0.0.0", "192.0.0.255", "2001::1", "2001:1ff:ffff::1"],
    "documentation": ["192.0.2.1", "198.51.100.1", "203.0.113.1", "2001:db8::1", "3fff::1"],
    "benchmarks": ["198.18.0.0", "198.19.255.255"],
    "6to4 relays": ["192.88.99.1"],
    "multicast": ["224.0.0.1", "239.255.255.255", "ff02::1", "ff0e::1"],
    "reserved": ["240.0.0.1", "255.255.255.254", "4000::1", "::2"],
    "broadcast": ["255.255.255.255"],
    "IPv4 in IPv6": ["::ffff:127.0.0.1", "::ffff:8.8.8.8", "::127.0.0.1"],
    "NAT64": ["64:ff9b::7f00:1", "64:ff9b::808:808", "64:ff9b:1::1"],
    "6to4": ["2002:7f00:1::", "2002:808:808::1"],
    "Teredo": ["2001:0:7f00:1::1"],
    "discard only": ["100::1"],
}
PUBLIC = [
    *("1.1.1.1", "8.8.8.8", "9.255.255.255", "11.0.0.0", "100.63.255.255", "100.128.0.0"),
    *("172.15.255.255", "172.32.0.0", "192.167.255.255", "192.169.0.0", "223.255.255.255"),
    *("2606:4700::1111", "2a00:1450::1", "2003::1"),
]


def url(address):
    return f"https://[{address}]/" if ":" in address else f"https://{address}/"


@pytest.mark.parametrize("kind", NOT_PUBLIC)
def test_no_kind_of_address_that_is_not_public_is_called(kind):
    for text in NOT_PUBLIC[kind]:
        assert not is_public(ip_address(text)), text
        with pytest.raises(InputError, match="not a public address"):
            parse_target(url(text), NOTHING)


def test_public_addresses_are_called():
    for text in PUBLIC:
        assert parse_target(url(text), NOTHING).address == ip_address(text)


@given(st.ip_addresses())
def test_what_python_knows_to_be_special_is_never_public(address):
    special = not address.is_global or address.is_multicast or address.is_reserved
    assert not (special and is_public(address))


@given(st.ip_addresses(v=4))
def test_no_form_of_an_ipv4_address_leads_around_the_rules(address):
    number = int(address)
    for prefix in ("::ffff:0:0", "::", "64:ff9b::", "64:ff9b:1::"):
        assert not is_public(IPv6Address(int(IPv6Address(prefix)) | number))
    assert not is_public(IPv6Address(int(IPv6Address("2002::")) | number << 80))
    hexadecimal = ".".join(f"0x{part:x}" for part in address.packed)
    octal = ".".join(f"0{part:o}" for part in address.packed)
    for text in (str(number), hex(number), hexadecimal, octal, f"{address.packed[0]}.{number}"):
        if text != str(address):
            with pytest.raises(InputError):
                parse_target(f"https://{text}/", NOTHING)


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("", "is empty"),
        ("hooks.example.org", "write an address such as"),
        ("//hooks.example.org/", "write an address such as"),
        ("https:///path", "write an address such as"),
        ("https://", "write an address such as"),
        ("ftp://hooks.example.org/", "write an address such as"),
        ("file:///etc/passwd", "write an address such as"),
        ("gopher://127.0.0.1:6379/_FLUSHALL", "write an address such as"),
        ("javascript:alert(1)", "write an address such as"),
        ("http://hooks.example.org/", "use https"),
        ("http://8.8.8.8/", "use https"),
        ("https://user:password@hooks.example.org/", "leave out the user"),
        ("https://user@hooks.example.org/", "leave out the user"),
        ("https://hooks.example.org@127.0.0.1/", "leave out the user"),
        ("https://hooks.example.org/#part", "leave out the fragment"),
        ("https://hooks.example.org/#", "leave out the fragment"),
        ("https://hooks.example.org\\@127.0.0.1/", "write it in ASCII"),
        ("https://hooks.example.org/a b", "write it in ASCII"),
        ("https://hooks.example.org/\r\nX-Header: 1", "write it in ASCII"),
        ("https://hooks.example.org/\t", "write it in ASCII"),
        (" https://hooks.example.org/", "write it in ASCII"),
        ("https://h\u00f6oks.example.org/", "write it in ASCII"),
        ("https://127\u30020\u30020\u30021/", "write it in ASCII"),
        ("https://hooks.example.org/\0", "write it in ASCII"),
        ("https://hooks.example.org:0/", "no port 0"),
        ("https://hooks.example.org:65536/", "the host or the port"),
        ("https://hooks.example.org:a/", "the host or the port"),
        ("https://[::1/", "the host or the port"),
        ("https://[fe80::1%25eth0]/", "the host"),
        ("https://[fe80::1%eth0]/", "the host"),
        ("https://a..example.org/", "neither a name nor an address"),
        ("https://.example.org/", "neither a name nor an address"),
        ("https://-a.example.org/", "neither a name nor an address"),
        ("https://%31%32%37.0.0.1/", "neither a name nor an address"),
        ("https://hooks,example.org/", "neither a name nor an address"),
        (f"https://{'a' * 64}.example.org/", "neither a name nor an address"),
        (f"https://{'a.' * 127}org/", "neither a name nor an address"),
        ("https://2130706433/", "neither a name nor an address"),
        ("https://127.1/", "neither a name nor an address"),
        ("https://0x7f.0.0.1/", "neither a name nor an address"),
        ("https://0177.0.0.1/", "neither a name nor an address"),
        ("https://localhost/", "not a public address"),
        ("https://LOCALHOST./", "not a public address"),
        ("https://anything.localhost:8443/", "not a public address"),
        (f"https://hooks.example.org/{'a' * 2048}", "2,074 characters; at most 2,048"),
    ],
)
def test_urls_that_cannot_be_called_are_refused_with_the_reason(text, reason):
    with pytest.raises(InputError, match=reason) as refusal:
        parse_target(text, NOTHING)
    assert "password" not in str(refusal.value).replace("the password", "")


def test_the_parts_of_a_url():
    target = parse_target("https://Hooks.Example.org.:8443/a%20b?token=1&x", NOTHING)
    assert (target.scheme, target.host, target.port) == ("https", "hooks.example.org", 8443)
    assert target.path == "/a%20b?token=1&x"
    assert target.authority == "hooks.example.org:8443"
    bare = parse_target("HTTPS://hooks.example.org", NOTHING)
    assert (bare.path, bare.port, bare.authority) == ("/", 443, "hooks.example.org")
    assert parse_target("https://hooks.example.org?x", NOTHING).path == "/?x"
    assert parse_target("https://[2606:4700::1111]:443/", NOTHING).authority == "[2606:4700::1111]"


def test_paths_and_queries_are_not_logged():
    assert loggable_target("https://hooks.example.org/T0/B1?secret=x") == (
        "https://hooks.example.org"
    )
    assert loggable_target("no address") == "an address that cannot be read"


def test_what_is_listed_is_allowed_over_http_too():
    allowed = AllowedTargets.parse(" Hooks.internal., 10.1.2.3, 10.9.0.0/16 ,fd00::/8,[::1],")
    for text in (
        "http://hooks.internal/",
        "https://HOOKS.internal.:8443/",
        "http://10.1.2.3:8080/",
        "http://10.9.255.255/",
        "http://[fd00::7]/",
        "https://[::1]/",
    ):
        assert parse_target(text, allowed)
    for text in (
        "http://other.internal/",
        "http://a.hooks.internal/",
        "https://10.1.2.4/",
        "https://10.10.0.1/",
        "https://127.0.0.1/",
    ):
        with pytest.raises(InputError):
            parse_target(text, allowed)


def test_every_address_of_a_name_must_be_allowed():
    name = parse_target("https://hooks.example.org/", NOTHING)
    public, private, other = map(IPv4Address, ("8.8.8.8", "10.0.0.1", "10.0.0.2"))
    assert NOTHING.usable(name, [public])
    assert not NOTHING.usable(name, [public, private])
    assert not NOTHING.usable(name, [private])
    network = AllowedTargets.parse("10.0.0.1")
    assert network.usable(name, [public, private])
    assert not network.usable(name, [private, other])
    assert AllowedTargets.parse("hooks.example.org").usable(name, [private])


@pytest.mark.parametrize("text", ["10.0.0.0/33", "a b", "http://hooks.internal", "*.internal", "%"])
def test_a_setting_that_cannot_be_read_is_refused(text):
    with pytest.raises(InputError, match="is no host, address or network"):
        AllowedTargets.parse(f"hooks.internal,{text}")
    with pytest.raises(InputError, match=r"HALLDETECT_WEBHOOK_ALLOWED_HOSTS: .*is no host"):
        load_settings(webhook_allowed_hosts=text)


def test_nothing_is_listed_unless_it_is_set():
    assert load_settings().allowed_webhook_targets == NOTHING
    listed = load_settings(webhook_allowed_hosts="10.0.0.0/8").allowed_webhook_targets
    assert listed.allows(ip_address("10.1.1.1"))
