#!/usr/bin/env bash
# make_certificates.sh DIRECTORY: the certificates of the tests, made anew, each NAME.pem (with its chain)
# and NAME.key. They are good for nothing else. Needs openssl(1).
set -euo pipefail

directory=$1
mkdir -p "$directory"
cd "$directory"
rm -rf ./*

cat >ca.cnf <<'END'
[ca]
default_ca = standard
[standard]
database = ./index.txt
serial = ./serial
crlnumber = ./crlnumber
new_certs_dir = .
default_md = sha256
default_days = 3650
default_crl_days = 3650
policy = any
unique_subject = no
copy_extensions = none
[any]
commonName = supplied
[req]
distinguished_name = name
[name]
END
: >index.txt
echo 1000 >serial
echo 1000 >crlnumber

quietly() {
    "$@" 2>log || { cat log >&2; exit 1; }
}

# key NAME [KIND]: a key on P-256, or as KIND says.
key() {
    local kind=${2:-ec}
    case $kind in
    ec) quietly openssl genpkey -algorithm EC -pkeyopt ec_paramgen_curve:P-256 -out "$1.key" ;;
    rsa*) quietly openssl genpkey -algorithm RSA -pkeyopt "rsa_keygen_bits:${kind#rsa}" -out "$1.key" ;;
    esac
}

# authority NAME [ISSUER]: may issue certificates; without an issuer, a root.
authority() {
    local name=$1 issuer=${2:-}
    key "$name"
    printf '%s\n' 'basicConstraints = critical, CA:TRUE' 'keyUsage = critical, keyCertSign, cRLSign' \
        'subjectKeyIdentifier = hash' >"$name.ext"
    quietly openssl req -new -config ca.cnf -key "$name.key" -subj "/CN=$name" -out "$name.csr"
    if [ -z "$issuer" ]; then
        quietly openssl x509 -req -in "$name.csr" -signkey "$name.key" -days 3650 -extfile "$name.ext" \
            -out "$name.pem"
    else
        sign "$name" "$issuer"
    fi
}

# sign NAME ISSUER [option...]: NAME.pem from NAME.csr and NAME.ext.
sign() {
    local name=$1 issuer=$2
    shift 2
    quietly openssl ca -batch -notext -config ca.cnf -cert "$issuer.pem" -keyfile "$issuer.key" \
        -in "$name.csr" -extfile "$name.ext" -out "$name.pem" "$@"
}

# certificate NAME ISSUER NAMES [purpose] [kind of key] [option...]
certificate() {
    local name=$1 issuer=$2 names=$3 purpose=${4:-serverAuth} kind=${5:-ec}
    shift $(($# < 5 ? $# : 5))
    key "$name" "$kind"
    printf '%s\n' 'basicConstraints = CA:FALSE' "extendedKeyUsage = $purpose" \
        'authorityKeyIdentifier = keyid' >"$name.ext"
    [ -z "$names" ] || echo "subjectAltName = $names" >>"$name.ext"
    quietly openssl req -new -config ca.cnf -key "$name.key" -subj "/CN=$name" -out "$name.csr"
    sign "$name" "$issuer" "$@"
}

here='DNS:localhost, IP:127.0.0.1, IP:::1'
authority root
authority stranger

certificate server root "$here"
certificate server_rsa root "$here" serverAuth rsa2048
certificate other_host root 'DNS:other.example'
certificate wildcard root 'DNS:*.example.org'
certificate partial_wildcard root 'DNS:w*.example.org'
certificate nameless root ''
certificate address_as_name root 'DNS:127.0.0.1'
certificate client root 'DNS:client.example' clientAuth
certificate no_server root "$here" clientAuth
certificate expired root "$here" serverAuth ec -startdate 200101000000Z -enddate 200102000000Z
certificate expired_client root 'DNS:client.example' clientAuth ec -startdate 200101000000Z \
    -enddate 200102000000Z
certificate future root "$here" serverAuth ec -startdate 450101000000Z -enddate 450102000000Z
certificate revoked root "$here" "serverAuth, clientAuth"
certificate unknown_issuer stranger "$here"
certificate weak_key root "$here" serverAuth rsa1024
certificate weak_signature root "$here" serverAuth ec -md sha1
certificate one root 'DNS:one.example, DNS:*.one.example'
certificate two root 'DNS:two.example'

key self_signed
printf 'subjectAltName = %s\n' "$here" >self_signed.ext
quietly openssl req -new -config ca.cnf -key self_signed.key -subj /CN=self_signed -out self_signed.csr
quietly openssl x509 -req -in self_signed.csr -signkey self_signed.key -days 3650 \
    -extfile self_signed.ext -out self_signed.pem

# A chain of three authorities below the root; the server sends them.
authority first root
authority second first
authority third second
certificate long_chain third "$here"
cat third.pem second.pem first.pem >>long_chain.pem

quietly openssl ca -batch -config ca.cnf -cert root.pem -keyfile root.key -revoke revoked.pem
quietly openssl ca -batch -config ca.cnf -cert root.pem -keyfile root.key -gencrl -out root.crl
for name in server server_rsa; do
    quietly openssl ocsp -index index.txt -CA root.pem -rsigner root.pem -rkey root.key -issuer root.pem \
        -cert "$name.pem" -respout "$name.ocsp" -ndays 3650 >log
done
quietly openssl pkey -in server.key -aes128 -passout pass:secret -out server_encrypted.key
printf 'this is no certificate\n' >garbage.pem
rm -f ./*.csr ./*.ext ./*.cnf* ./index* ./serial* ./crlnumber* ./log ./1???.pem
