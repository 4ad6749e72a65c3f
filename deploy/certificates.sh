#!/usr/bin/env bash
# Certificates of the inner network, between HAProxy and its txl-servers: an
# authority of its own, made once, and a pair for each side, made anew each time
# (that is how they are renewed; running servers take new ones by themselves).
#
#   deploy/certificates.sh DIR [--days N] [--names DNS:a,IP:b]
#
#   DIR/ca.crt, DIR/ca.key            the authority; keep its key elsewhere
#   DIR/server/{tls.crt,tls.key,ca.crt}   for txl-server, user 10001
#   DIR/proxy/{tls.crt,tls.key,ca.crt}    for HAProxy, user 99
#
#   --days   how long the pairs are good (default: 90)
#   --names  names and addresses of servers beside txl-server, txl-1 to txl-8,
#            localhost and 127.0.0.1
#
# As root it gives the keys to their users; else chown them.
set -euo pipefail

folder= days=90 more=
while [ $# -gt 0 ]; do
  case "$1" in
    --days) days=${2:?--days needs a number}; shift 2 ;;
    --names) more=,${2:?--names needs names}; shift 2 ;;
    -h | --help) sed -n '2,18p' "$0"; exit 0 ;;
    -*) echo "certificates.sh: unknown argument: $1" >&2; exit 2 ;;
    *) folder=$1; shift ;;
  esac
done
[ -n "$folder" ] || { echo "certificates.sh: which folder?" >&2; exit 2; }
mkdir -p "$folder"
cd "$folder"
umask 077
new_key=(-newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes)

if [ ! -e ca.key ]; then
  openssl req -x509 "${new_key[@]}" -days 3650 -subj "/CN=txl inner network" \
    -addext "basicConstraints=critical,CA:TRUE,pathlen:0" \
    -addext "keyUsage=critical,keyCertSign,cRLSign" \
    -keyout ca.key -out ca.crt 2> /dev/null
fi

# A pair is put into place whole: key first, then the certificate.
issue() {  # FOLDER SUBJECT EXTENSIONS USER
  local work
  work=$(mktemp -d)
  printf '%s\n' "$3" > "$work/extensions"
  openssl req "${new_key[@]}" -subj "/CN=$2" -keyout "$work/tls.key" \
    -out "$work/request" 2> /dev/null
  openssl x509 -req -in "$work/request" -CA ca.crt -CAkey ca.key \
    -CAcreateserial -days "$days" -extfile "$work/extensions" \
    -out "$work/tls.crt" 2> /dev/null
  cp ca.crt "$work/ca.crt"
  chmod 644 "$work"/*.crt
  if [ "$(id -u)" = 0 ]; then chown "$4:$4" "$work/tls.key"; fi
  mkdir -p "$1"
  chmod 755 "$1"
  for file in tls.key tls.crt ca.crt; do
    cp -p "$work/$file" "$1/.$file"
    mv "$1/.$file" "$1/$file"
  done
  rm -r "$work"
}

names=DNS:txl-server,DNS:localhost,IP:127.0.0.1
for number in 1 2 3 4 5 6 7 8; do names+=,DNS:txl-$number; done
# A server shows its own to itself, for its health check. Neither's subject can
# be a tenant's name, so that it does not stand for those behind it.
issue server txl-server.inner "subjectAltName=$names$more
extendedKeyUsage=serverAuth,clientAuth" 10001
issue proxy haproxy.inner "subjectAltName=DNS:haproxy
extendedKeyUsage=clientAuth" 99
chmod 755 .
chmod 644 ca.crt
