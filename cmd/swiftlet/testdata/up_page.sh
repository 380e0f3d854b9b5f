#!/bin/bash
# The page of `swiftlet up`, with or without --api, on a machine of its own (see up_page_test.go).
# usage: up_page.sh SWIFTLET STATE MANIFESTS VISITOR [--api]
set -uo pipefail
swiftlet=$1 state=$2 manifests=$3 visitor=$4 api=${5-}
out=$state/out
. testdata/functions.sh
. testdata/canary.sh
secrets=$state/secrets registries=$state/config.json
umask 077
password=canary$(head -c 12 /proc/sys/kernel/random/uuid | tr -d -)
auth=$(printf 'ann:%s' "$password" | base64 -w 0)
echo "{\"auths\": {\"registry.none:5000\": {\"auth\": \"$auth\"}}}" >"$registries"
umask 022

echo '{apiVersion: v1, kind: Pod, metadata: {name: broken}, spec: {containers: [{name: app, image: "docker.io/none/none:1", imagePullPolicy: Never}]}}' >"$manifests/broken.yaml"
[ "$api" ] && api="--api --kubeconfig-group=games"
"$swiftlet" up $api --manifests "$manifests" --registry-config "$registries" --root "$state/root" >"$out" 2>"$state/log" &
up=$!
await "the web pod is ready" shows web 'Running ready 1/1 restarts 0'

grep -q 'swiftlet ui' "$out" || fail "the output does not say how to get a link"
! grep -q 'token=' "$out" "$state/log" || fail "a token is in a file"
link=$("$swiftlet" ui --root "$state/root") || fail "no link: $link"
case $link in https://127.0.0.1:10250/ui/login?token=*) ;; *) fail "the link is $link" ;; esac
name=web
[ "$api" ] || name=web-$(hostname)
SWIFTLET_TEST_LINK=$link SWIFTLET_TEST_CA=$state/root/pki/ca.crt SWIFTLET_TEST_POD=$name SWIFTLET_TEST_SECRETS=$secrets "$visitor" -test.run '^TestVisitor$' -test.v || fail "the page is wrong"
chmod o+x "$state" "$(dirname "$state")"
as() { setpriv --reuid nobody --regid nogroup --groups "$1" "${@:2}"; }
if [ "$api" ]; then # members of the group are administrators
  other=$(as games "$swiftlet" ui --root "$state/root" 2>&1)
  case $other in https://127.0.0.1:10250/ui/login?token=*) ;; *) fail "the link of a member is $other" ;; esac
  as games "$swiftlet" why broken --root "$state/root" >"$state/answer" || fail "a member may not ask why: $(cat "$state/answer")"
  grep -q 'container app: image' "$state/answer" || fail "why says to a member: $(cat "$state/answer")"
fi
as nogroup "$swiftlet" ui --root "$state/root" >"$state/answer" 2>&1 && fail "anyone gets a link"
grep -q 'only root and members of --kubeconfig-group may do this' "$state/answer" || fail "swiftlet ui says to others: $(cat "$state/answer")"
code() { curl -s -o "$state/answer" -w '%{http_code}' --cacert "$state/root/pki/ca.crt" "$@"; }
[ "$(code "$link")" = 403 ] || fail "a link works twice"
for path in ui/ ui/api/stream ui/api/history "ui/api/pods/default/$name" pods page/x/ui/; do
  [ "$(code "https://127.0.0.1:10250/$path")" = 401 ] || fail "/$path is served without a session"
done
[ "$(code -X POST https://127.0.0.1:10250/ui/link)" = 401 ] || fail "a stranger gets a link"

(
  umask 077
  echo "${link#*token=}"
  unused=$("$swiftlet" ui --root "$state/root") && echo "${unused#*token=}"
  printf '%s\n%s\n' "$password" "$auth"
  keys "$state/root"
) >>"$secrets"
[ "$(wc -l <"$secrets")" -ge 8 ] && [ "$(awk 'length < 12' "$secrets" | wc -l)" = 0 ] || fail "secrets are missing: $(wc -l <"$secrets")"
grep -qFf "$secrets" "$state/root/pki/admin.key" && grep -qFf "$secrets" "$registries" || fail "the search does not find secrets"
found=$(leaks "$state/root" "$out" "$state/log")
[ ! "$found" ] || fail "leaked: $found"
echo "ok: no secret in logs, the report, arguments and files that others can read"

kill -INT "$up"
await "it stops" eval '! kill -0 $up 2>/dev/null'
! grep -q 'token=' "$out" "$state/log" || fail "a token is in a file"

"$swiftlet" up --ui=false --manifests "$manifests" --root "$state/root" >"$out" 2>"$state/log" &
up=$!
await "it starts without the page" shows web 'Running ready 1/1 restarts 0'
"$swiftlet" ui --root "$state/root" >"$state/answer" 2>&1 && fail "there is a link without a page"
grep -q 'has no page' "$state/answer" || fail "swiftlet ui says: $(cat "$state/answer")"
kill -INT "$up"
await "it stops again" eval '! kill -0 $up 2>/dev/null'
