"""The forms in which a URL can name an address, each with the hub's verdict and its reason.

`tests/unit/registrations/test_address_forms.py` checks the verdict about the text of each URL, and
`tests/integration/delivery/test_address_guard.py` that a connection to none of the refused ones is
opened even if its text was stored unchecked.
"""

from typing import NamedTuple


class AddressForm(NamedTuple):
    """A URL with `{port}` for the port of a listener on loopback, and the code of the error that
    refuses it; empty if it is valid.
    """

    url: str
    code: str
    why: str


def _addresses(why: str, *hosts: str, code: str = "refused_address") -> list[AddressForm]:
    return [AddressForm(f"http://{host}:{{port}}/", code, why) for host in hosts]


def _urls(why: str, *urls: str, code: str = "invalid_field") -> list[AddressForm]:
    return [AddressForm(url, code, why) for url in urls]


_NUMBERS = "only four decimal numbers are an IPv4 address; resolvers read more"
_NAME = "not a host name"
_ONE_READING = "parsers disagree about the host"

ADDRESS_FORMS = [
    # IPv4 in four decimal numbers
    *_addresses("loopback", "127.0.0.1", "127.0.0.0", "127.1.2.3", "127.255.255.255"),
    *_addresses("this network; Linux connects 0.0.0.0 to itself", "0.0.0.0", "0.0.0.1"),
    *_addresses("private use", "10.0.0.1", "172.16.0.1", "172.31.255.255", "192.168.0.1"),
    *_addresses("shared address space (carrier-grade NAT)", "100.64.0.1", "100.127.255.255"),
    *_addresses("metadata of AWS, GCP, Azure and others", "169.254.169.254"),
    *_addresses("metadata of AWS containers, credentials included", "169.254.170.2"),
    *_addresses("metadata of Alibaba Cloud", "100.100.100.200"),
    *_addresses("metadata of Oracle Cloud", "192.0.0.192"),
    *_addresses("platform services of Azure, at a public address", "168.63.129.16"),
    *_addresses("documentation", "192.0.2.1", "198.51.100.1", "203.0.113.1"),
    *_addresses("benchmarking", "198.18.0.1", "198.19.255.255"),
    *_addresses("multicast", "224.0.0.1", "239.255.255.255"),
    *_addresses("reserved and broadcast", "240.0.0.1", "255.255.255.255"),
    *_addresses("6to4 relay anycast", "192.88.99.1"),
    # IPv4 in other notations
    *_addresses("one decimal number", "2130706433", "0", "017700000001", code="invalid_field"),
    *_addresses("hexadecimal", "0x7f000001", "0X7F.0.0.1", "0x7f.0x0.0x0.0x1",
                code="invalid_field"),
    *_addresses("octal", "0177.0.0.1", "0177.0.0.01", "127.0.0.01", code="invalid_field"),
    *_addresses("short", "127.1", "127.0.1", "127.65535", "10.1", code="invalid_field"),
    *_addresses("too large, which some readers wrap", "256.0.0.1", "383.0.0.1", "4294967296",
                code="invalid_field"),
    *_addresses("five numbers", "127.0.0.1.1", code="invalid_field"),
    *_addresses(_NUMBERS, "127.0.0.1.", "127.1.", "0x7f000001.", "example.127", "1.2.3.0x",
                code="invalid_field"),
    # IPv6
    *_addresses("loopback", "[::1]", "[0:0:0:0:0:0:0:1]", "[0000::0001]"),
    *_addresses("unspecified; Linux connects it to itself", "[::]", "[0:0:0:0:0:0:0:0]"),
    *_addresses("IPv4-mapped", "[::ffff:127.0.0.1]", "[::ffff:7f00:1]", "[::FFFF:169.254.169.254]",
                "[0:0:0:0:0:ffff:10.0.0.1]", "[::ffff:0:0]"),
    *_addresses("IPv4-compatible", "[::127.0.0.1]", "[::7f00:1]", "[::10.0.0.1]", "[::8.8.8.8]"),
    *_addresses("IPv4-translated (SIIT)", "[::ffff:0:127.0.0.1]", "[::ffff:0:8.8.8.8]"),
    *_addresses("NAT64 of a private address", "[64:ff9b::127.0.0.1]", "[64:ff9b::a00:1]",
                "[64:ff9b::a9fe:a9fe]", "[64:ff9b::]"),
    *_addresses("local NAT64", "[64:ff9b:1::1]", "[64:ff9b:1::7f00:1]",
                "[64:ff9b:1:ffff::8.8.8.8]"),
    *_addresses("6to4", "[2002:7f00:1::]", "[2002:a00:1::1]", "[2002:808:808::1]"),
    *_addresses("Teredo", "[2001::1]", "[2001:0:4136:e378:8000:63bf:80ff:fffe]"),
    *_addresses("ISATAP", "[2606:4700::5efe:127.0.0.1]", "[2606:4700::200:5efe:10.0.0.1]",
                "[2606:4700::5efe:8.8.8.8]", "[fe80::5efe:10.0.0.1]"),
    *_addresses("metadata of AWS", "[fd00:ec2::254]"),
    *_addresses("metadata of GCP", "[fd20:ce::254]"),
    *_addresses("link-local metadata", "[fe80::a9fe:a9fe]"),
    *_addresses("unique local", "[fc00::1]", "[fdff:ffff::1]"),
    *_addresses("link-local and site-local", "[fe80::1]", "[febf::1]", "[fec0::1]"),
    *_addresses("multicast", "[ff02::1]", "[ff0e::1]"),
    *_addresses("documentation", "[2001:db8::1]", "[3fff::1]"),
    *_addresses("benchmarking and ORCHID", "[2001:2::1]", "[2001:20::1]"),
    *_addresses("discard-only", "[100::1]"),
    *_addresses("segment routing", "[5f00::1]"),
    *_addresses("outside of what IANA allocates", "[4000::1]", "[1fff::1]"),
    *_addresses("zones of IPv6", "[fe80::1%25eth0]", "[fe80::1%eth0]", "[::1%25lo]", "[::1%251]",
                code="invalid_field"),
    *_addresses("brackets around no IPv6 address", "[127.0.0.1]", "[8.8.8.8]", "[localhost]", "[]",
                "[v1.fe80::a]", "[::1.2.3]", "[:::1]", "[1::2::3]", "[::g]", "[::ffff:127.1]",
                code="invalid_field"),
    *_addresses("text around brackets", "[::1]x", "x[::1]", "[::1][::1]", "[[::1]]", "[::1", "::1]",
                "[::ffff:8.8.8.8]127.0.0.1", code="invalid_field"),
    *_addresses("IPv6 without brackets", "::1", "::ffff:127.0.0.1", code="invalid_field"),
    # names
    *_addresses("loopback by RFC 6761", "localhost", "LOCALHOST", "localhost.", "LocalHost.",
                "a.localhost", "a.b.localhost."),
    *_addresses("empty labels", "a..example", ".a.example", "localhost..", ".localhost", "..", ".",
                "127..1", code="invalid_field"),
    *_addresses("hyphens at the end of a label", "-a.example", "a-.example", code="invalid_field"),
    *_addresses("a label of 64 characters", "a" * 64 + ".example", code="invalid_field"),
    *_addresses("a name of 255 characters", ".".join(["a" * 63] * 4), code="invalid_field"),
    *_addresses("a host of 2,000 characters", "a." * 1_000 + "example", code="invalid_field"),
    *_urls("longer than a URL", "http://a.example/" + "x" * 2_048, code="field_too_long"),
    *_addresses("full-width digits and dots", "１２７.0.0.1", "127。0。0。1", "127．0．0．1",
                "127｡0｡0｡1", code="invalid_field"),
    *_addresses("circled and superscript digits", "①②⑦.⓪.⓪.①", "127.0.0.¹", code="invalid_field"),
    *_addresses("letters that look like or fold to others", "ⓛocalhost", "loc\u0430lhost",
                "localho\u017ft", "ｌocalhost", code="invalid_field"),
    *_addresses("invisible characters", "local\u00adhost", "127.0.0.1\u200b", "\ufefflocalhost",
                code="invalid_field"),
    *_addresses("percent-encoded", "%31%32%37.0.0.1", "127%2e0%2e0%2e1", "%6cocalhost",
                "localhost%00.example", "a.example%2f@127.0.0.1", "127.0.0.1%20", "%5b::1%5d",
                code="invalid_field"),
    *_addresses("other characters", "a_b!.example", "a,b", "a;b", "(127.0.0.1)", "127.0.0.1&a", "*",
                "$a", "'a'", '"a"', "~", "{{a}}", "<a>", "a|b", "a^b", "`a`", code="invalid_field"),
    # the parts around the host
    *_urls("user names", "http://user@127.0.0.1:{port}/", "http://a.example@127.0.0.1:{port}/",
           "http://127.0.0.1:{port}@a.example/", "http://a:b@a.example/",
           "http://@127.0.0.1:{port}/",
           "http://a.example:80@127.0.0.1:{port}/", "http://@@127.0.0.1:{port}/"),
    *_urls("fragments", "http://a.example#@127.0.0.1:{port}/", "http://127.0.0.1:{port}#a.example",
           "http://a.example/#"),
    *_urls("backslashes", "http:\\\\127.0.0.1:{port}\\", "http://a.example\\@127.0.0.1:{port}/",
           "http://127.0.0.1:{port}\\.a.example/", "http:/\\127.0.0.1:{port}/",
           "http://\\127.0.0.1:{port}/"),
    *_urls("control characters and spaces", "http://127.0.0.1:{port}/\n",
           "\thttp://127.0.0.1:{port}/",
           "http://127.0.\t0.1:{port}/", "http://a.example\r\nhost: b/",
           "http://127.0.0.1 :{port}/",
           " http://127.0.0.1:{port}/", "http://127.0.0.1\x00.a.example/", "ht\ntp://127.0.0.1/",
           "http://127.0.0.1\u00a0:{port}/", "http://127.0.0.1\u2028:{port}/"),
    *_urls("ports", "http://127.0.0.1:0/", "http://127.0.0.1:65536/", "http://127.0.0.1:-1/",
           "http://127.0.0.1:8_0/", "http://127.0.0.1:+80/", "http://127.0.0.1:0x50/",
           "http://127.0.0.1:80:80/", "http://127.0.0.1:99999999999/", "http://127.0.0.1:８０/",
           "http://127.0.0.1:http/"),
    *_urls(_ONE_READING, "http://127.0.0.1:/", "https://https://127.0.0.1:{port}/",
           "http://:{port}/"),
    *_urls("slashes", "http:///127.0.0.1:{port}/", "http:/127.0.0.1:{port}/",
           "http:127.0.0.1:{port}",
           "//127.0.0.1:{port}/", "http:////127.0.0.1:{port}/", "127.0.0.1:{port}", "http://", ""),
    *_urls("schemes", "ftp://127.0.0.1/", "file:///etc/passwd", "gopher://127.0.0.1:{port}/_",
           "unix:///run/redis.sock", "javascript:alert(1)", "data:,a", "ws://127.0.0.1:{port}/",
           "jar:http://127.0.0.1!/", "url:http://127.0.0.1:{port}/", "http+unix://%2Frun%2Fa/"),
    # valid
    *_urls("public addresses", "http://8.8.8.8/", "https://1.1.1.1:8443/x", "http://172.32.0.1/",
           "http://100.128.0.1/", "http://168.63.129.15/", "http://[2606:4700::1111]:8080/",
           "http://[::ffff:8.8.8.8]/", "http://[64:ff9b::808:808]/", "http://[2001:200::1]/",
           code=""),
    *_urls("names; each connection checks where they lead", "https://a.example/",
           "HTTPS://A.EXAMPLE",
           "https://a.example.:443/", "http://xn--bcher-kva.example/", "http://service_1/",
           "http://localhost.example/", "http://127.0.0.1.example/", "http://mylocalhost/",
           "http://0x7f.example/", "https://" + ".".join(["a" * 63] * 3) + ".example/", code=""),
    *_urls("the host ends at the path or query", "http://a.example/@127.0.0.1/",
           "http://a.example?@127.0.0.1/", "http://a.example/\\127.0.0.1",
           "http://a.example/%0d%0a",
           "http://a.example//127.0.0.1/", "http://a.example/[::1]", code=""),
]  # fmt: skip
