"""Certificates for tests of TLS: an authority, and certificates that it issues, in PEM."""

from datetime import UTC, datetime, timedelta
from ipaddress import ip_address

from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat
from cryptography.x509.oid import NameOID


class Authority:
    """A certificate authority; `pem` is its certificate."""

    def __init__(self, name: str) -> None:
        self._name = _name(name)
        self._key = ec.generate_private_key(ec.SECP256R1())
        builder = self._builder(self._name, self._key, datetime.now(UTC) + timedelta(days=30))
        usage = x509.KeyUsage(
            digital_signature=True, content_commitment=False, key_encipherment=False,
            data_encipherment=False, key_agreement=False, key_cert_sign=True, crl_sign=True,
            encipher_only=False, decipher_only=False,
        )  # fmt: skip
        builder = builder.add_extension(x509.BasicConstraints(ca=True, path_length=None), True)
        builder = builder.add_extension(usage, True)
        self.pem = _pem(builder.sign(self._key, hashes.SHA256()))

    def issue(self, name: str, *, until: datetime | None = None) -> tuple[str, str]:
        """Return a certificate for a name and 127.0.0.1, and its private key."""
        key = ec.generate_private_key(ec.SECP256R1())
        builder = self._builder(_name(name), key, until or datetime.now(UTC) + timedelta(days=1))
        names = [x509.DNSName(name), x509.IPAddress(ip_address("127.0.0.1"))]
        builder = builder.add_extension(x509.SubjectAlternativeName(names), False)
        private = key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()).decode()
        return _pem(builder.sign(self._key, hashes.SHA256())), private

    def _builder(
        self, subject: x509.Name, key: ec.EllipticCurvePrivateKey, until: datetime
    ) -> x509.CertificateBuilder:
        own = self._key.public_key()
        return (
            x509.CertificateBuilder()
            .subject_name(subject)
            .issuer_name(self._name)
            .public_key(key.public_key())
            .serial_number(x509.random_serial_number())
            .not_valid_before(min(until, datetime.now(UTC)) - timedelta(days=1))
            .not_valid_after(until)
            .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), False)
            .add_extension(x509.AuthorityKeyIdentifier.from_issuer_public_key(own), False)
        )


def _name(name: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])


def _pem(certificate: x509.Certificate) -> str:
    return certificate.public_bytes(Encoding.PEM).decode()
