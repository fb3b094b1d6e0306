#!/bin/sh
# Creates certificates for the peer ports of a cluster: an authority that signs nothing else, and one certificate per member.
#   deploy/peer-certificates.sh FOLDER NAME [NAME…]
# NAME is the host of a member in --cluster: a DNS name or an IP address. FILE=NAME,NAME,… makes one certificate for several
# members, where they cannot have files of their own. Existing files are kept, so that a member can be
# added later; ca.key is needed only for that, and belongs on no member.
set -eu
[ $# -ge 2 ] || { echo "usage: $0 FOLDER NAME [NAME...]" >&2; exit 64; }
folder=$1
shift
umask 077
mkdir -p "$folder"
new_key() { openssl genpkey -algorithm EC -pkeyopt ec_paramgen_curve:prime256v1 -out "$1" 2>/dev/null; }

if [ ! -f "$folder/ca.pem" ]; then
  new_key "$folder/ca.key"
  openssl req -x509 -key "$folder/ca.key" -out "$folder/ca.pem" -days 3650 -subj '/CN=Leasehold members'
fi
for arg in "$@"; do
  file=${arg%%=*}
  [ -f "$folder/$file.pem" ] && continue
  names=
  for name in $(echo "${arg#*=}" | tr ',' ' '); do
    case $name in
      *:*) kind=IP ;;
      *[!0-9.]*) kind=DNS ;;
      *) kind=IP ;;
    esac
    names=${names:+$names,}$kind:$name
  done
  new_key "$folder/$file.key"
  # Members are servers and clients of each other: a certificate for clients alone is rejected.
  printf 'subjectAltName=%s\nextendedKeyUsage=serverAuth,clientAuth\n' "$names" > "$folder/extensions"
  openssl req -new -key "$folder/$file.key" -subj "/CN=$file" -out "$folder/request"
  openssl x509 -req -in "$folder/request" -CA "$folder/ca.pem" -CAkey "$folder/ca.key" -CAcreateserial -days 825 \
    -extfile "$folder/extensions" -out "$folder/$file.pem" 2>/dev/null
  rm "$folder/extensions" "$folder/request"
  chmod a+r "$folder/$file.pem"
  echo "$folder/$file.pem"
done
chmod a+r "$folder/ca.pem"
