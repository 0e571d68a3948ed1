"""The kubelet endpoint's side of TLS: a self-signed certificate of this process, and the CA of clients.

Used by `kubelet`. What always holds: the key is made at start and lies in a folder of ours for the moment in which
OpenSSL reads it.
"""

from __future__ import annotations

import ipaddress
import ssl
import tempfile
from datetime import UTC, datetime, timedelta
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

LIFE = timedelta(days=3650)
"""API servers do not look at it unless they were given a CA for kubelets; a pod may live long."""


def self_signed(address: str) -> bytes:
    """Certificate and key for an IP address, in PEM."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "kubeslurm-virtual-node")])
    now = datetime.now(UTC)
    builder = x509.CertificateBuilder(name, name, key.public_key(), x509.random_serial_number())
    builder = builder.not_valid_before(now - timedelta(hours=1)).not_valid_after(now + LIFE)
    alternative = x509.SubjectAlternativeName([x509.IPAddress(ipaddress.ip_address(address))])
    usage = x509.ExtendedKeyUsage([ExtendedKeyUsageOID.SERVER_AUTH])
    made = builder.add_extension(alternative, critical=False).add_extension(usage, critical=False)
    pem, private = serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8
    certificate = made.sign(key, hashes.SHA256()).public_bytes(pem)
    return certificate + key.private_bytes(pem, private, serialization.NoEncryption())


def context(certificate: bytes, client_ca: str) -> ssl.SSLContext:
    """For the server; certificates of clients are asked for where there is a CA to check them by."""
    made = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    made.minimum_version = ssl.TLSVersion.TLSv1_2
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "kubelet.pem"
        path.touch(mode=0o600)
        path.write_bytes(certificate)
        made.load_cert_chain(path)
    if client_ca:
        made.load_verify_locations(cadata=client_ca)
        made.verify_mode = ssl.CERT_OPTIONAL
    return made
