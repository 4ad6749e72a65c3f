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
#            localhost and 127.0.0.1, each DNS:NAME or IP:ADDRESS
#
# As root it gives the keys to their users; else chown them.
set -euo pipefail

refuse() { echo "certificates.sh: $1" >&2; exit 2; }

folder= days=90 more=
while [ $# -gt 0 ]; do
  case "$1" in
    --days) days=${2:?--days needs a number}; shift 2 ;;
    --names) more=,${2:?--names needs names}; shift 2 ;;
    -h | --help) sed -n '2,/^[^#]/{/^#/p}' "$0"; exit 0 ;;
    -*) refuse "unknown argument: $1" ;;
    *) [ -z "$folder" ] || refuse "one folder only, not $folder and $1"
       folder=$1; shift ;;
  esac
done
[ -n "$folder" ] || refuse "which folder?"
[[ $days =~ ^[1-9][0-9]{0,3}$ ]] || refuse "--days: $days is not in 1..9999"
name='(DNS:[A-Za-z0-9._*-]+|IP:[0-9A-Fa-f.:]+)'
[[ $more =~ ^(,$name)*$ ]] ||
  refuse "--names: ${more#,} is not DNS:NAME or IP:ADDRESS, with commas between"

mkdir -p "$folder"
cd "$folder"
umask 077
work=$(mktemp -d)
trap 'rm -r "$work"' EXIT
new_key=(-newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes)

# Its messages only where it fails.
quietly() { "$@" 2> "$work/said" || { cat "$work/said" >&2; exit 1; }; }

# Files of $work into a folder, each whole under its name.
place() {  # FOLDER FILE...
  for file in "${@:2}"; do
    cp -p "$work/$file" "$1/.$file"
    mv "$1/.$file" "$1/$file"
  done
}

# Makes the pair in $work, then puts it into place: key first.
issue() {  # FOLDER SUBJECT EXTENSIONS USER
  printf '%s\n' "$3" > "$work/extensions"
  quietly openssl req "${new_key[@]}" -subj "/CN=$2" -keyout "$work/tls.key" \
    -out "$work/request"
  quietly openssl x509 -req -in "$work/request" -CA "$work/ca.crt" \
    -CAkey "$work/ca.key" -CAcreateserial -days "$days" \
    -extfile "$work/extensions" -out "$work/tls.crt"
  chmod 644 "$work"/*.crt
  if [ "$(id -u)" = 0 ]; then chown "$4:$4" "$work/tls.key"; fi
  if [ ! -e ca.key ]; then place . ca.crt ca.key; fi
  mkdir -p "$1"
  chmod 755 "$1"
  place "$1" tls.key tls.crt ca.crt
}

if [ -e ca.key ]; then
  cp ca.crt ca.key "$work"
else
  quietly openssl req -x509 "${new_key[@]}" -days 3650 \
    -subj "/CN=txl inner network" \
    -addext "basicConstraints=critical,CA:TRUE,pathlen:0" \
    -addext "keyUsage=critical,keyCertSign,cRLSign" \
    -keyout "$work/ca.key" -out "$work/ca.crt"
fi

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
