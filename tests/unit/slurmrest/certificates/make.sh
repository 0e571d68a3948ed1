#!/bin/sh
# Makes the certificates of the TLS tests anew: of no use anywhere else, good for a hundred years.
set -eu
cd "$(dirname "$0")"
ca() { openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 36500 -subj "/CN=$1" -keyout "$1.key" -out "$1.pem"; }
leaf() { # name, subject alternative name, usage
    openssl req -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -subj "/CN=$1" -keyout "$1.key" -out "$1.csr"
    printf 'subjectAltName=%s\nextendedKeyUsage=%s\n' "$2" "$3" > "$1.ext"
    openssl x509 -req -in "$1.csr" -CA ca.pem -CAkey ca.key -CAcreateserial -days 36500 -extfile "$1.ext" -out "$1.pem"
    rm "$1.csr" "$1.ext"
}
ca ca
ca stranger
leaf server DNS:localhost,IP:127.0.0.1 serverAuth
leaf elsewhere DNS:elsewhere.example serverAuth
leaf client DNS:client.example clientAuth
openssl ec -in client.key -aes128 -passout pass:secret -out locked.key
rm ca.key stranger.key ca.srl
