# Services and DNS of `swiftlet up --api`. Sourced by up_api.sh.

# outside makes a network that this machine is in, with a host whose name server this machine uses.
outside() {
  ip netns add outside
  ip link add uplink type veth peer name uplink netns outside
  ip address add 192.0.2.1/24 dev uplink
  ip link set uplink up
  ip route add default via 192.0.2.53
  ip -n outside address add 192.0.2.53/24 dev uplink
  ip -n outside link set uplink up
  SWIFTLET_TEST_NAMESERVER=192.0.2.53:53 ip netns exec outside "$nameserver" &
  echo "nameserver 192.0.2.53" >"$state/resolv.conf"
  mount --bind "$state/resolv.conf" /etc/resolv.conf
}

pods_of() { kubectl get pods -l "$1" --field-selector status.phase=Running -o "jsonpath={.items[*].$2}" | tr ' ' '\n' | sort; }
pid_of() { pgrep -f -o "$1"; }                                   # of a container, by its command line
from() { timeout 5 nsenter -m -n -t "$(pid_of "$1")" /example "${@:2}"; } # CONTAINER COMMAND…, in its network and with its files
mine() { from 'serve :9000' "$@"; }
page_of() { curl -sf -m 3 "http://$1/hostname"; }
answers() { for _ in $(seq "$1"); do "${@:2}"; done | sort -u; } # COUNT COMMAND…: the different answers
same() { [ "$1" ] && [ "$1" = "$2" ]; }
dns() { pgrep -f '/swiftlet-dns '; }
uses() { # until the file is removed: calls a Service by name, one call after the other
  until [ -e "$state/used" ]; do
    mine get http://site/hostname >/dev/null 2>"$state/get" || cat "$state/get"
  done
}

services() {
  dns && fail "DNS runs before anyone asks"
  nft list tables | grep kube-proxy && fail "the service proxy runs without a Service"
  kubectl apply -f - <<'EOF' || fail "Services are not created"
{apiVersion: apps/v1, kind: Deployment, metadata: {name: site}, spec: {replicas: 2, selector: {matchLabels: {app: site}}, template: {
  metadata: {labels: {app: site}}, spec: {terminationGracePeriodSeconds: 1, containers: [
    {name: c, image: docker.io/swiftlet/example:1, args: [serve, ":9001", /etc], readinessProbe: {httpGet: {path: /healthz, port: 9001}, periodSeconds: 1}}]}}}}
---
{apiVersion: v1, kind: Pod, metadata: {name: unready, labels: {app: site}}, spec: {containers: [
  {name: c, image: docker.io/swiftlet/example:1, args: [serve, ":9001", /etc], readinessProbe: {httpGet: {path: /none, port: 9001}}}]}}
---
{apiVersion: v1, kind: Service, metadata: {name: site}, spec: {type: NodePort, selector: {app: site}, ports: [{port: 80, targetPort: 9001, nodePort: 30080}]}}
---
{apiVersion: v1, kind: Service, metadata: {name: local}, spec: {type: NodePort, externalTrafficPolicy: Local, internalTrafficPolicy: Local, selector: {app: site}, ports: [{port: 80, targetPort: 9001, nodePort: 30081}]}}
---
{apiVersion: v1, kind: Service, metadata: {name: sticky}, spec: {sessionAffinity: ClientIP, selector: {app: site}, ports: [{port: 80, targetPort: 9001}]}}
---
{apiVersion: v1, kind: Service, metadata: {name: heads}, spec: {clusterIP: None, selector: {app: site}, ports: [{name: http, port: 9001}]}}
---
{apiVersion: v1, kind: Service, metadata: {name: none}, spec: {selector: {app: none}, ports: [{port: 80}]}}
EOF
  kubectl rollout status deployment site --timeout=30s || fail "the Deployment is not ready: $(kubectl describe pods -l app=site)"
  await "the pod that is not ready runs" is pod unready '{.status.phase}' Running
  local names ip; names=$(pods_of app=site,pod-template-hash metadata.name) ip=$(field service site '{.spec.clusterIP}')

  await "the first query starts DNS" mine lookup kubernetes.default
  [ "$(stat -c %u "/proc/$(dns)")" = 65534 ] || fail "DNS runs as root"
  same "$(mine lookup kubernetes.default)" "$(field service kubernetes '{.spec.clusterIP}')" || fail "kubernetes.default is $(mine lookup kubernetes.default)"
  for name in site site.default site.default.svc.cluster.local; do
    same "$(mine lookup $name)" "$ip" || fail "$name is $(mine lookup $name), not $ip"
  done
  await "a headless Service is its ready pods" eval 'same "$(mine lookup heads | sort)" "$(pods_of app=site,pod-template-hash status.podIP)"'
  [[ "$(mine lookup _http._tcp.heads.default.svc.cluster.local)" =~ \.heads\.default\.svc\.cluster\.local\.\ 9001 ]] || fail "SRV: $(mine lookup _http._tcp.heads.default.svc.cluster.local)"
  same "$(mine lookup example.test)" 198.51.100.9 || fail "a name outside is $(mine lookup example.test)"
  [[ "$(mine lookup nothing.default.svc.cluster.local 2>&1)" == *"no such host"* ]] || fail "a name that no Service has: $(mine lookup nothing.default.svc.cluster.local 2>&1)"
  echo "ok: names are resolved"

  await "a name leads to every ready pod" eval 'same "$(answers 20 mine get http://site/hostname)" "$names"'
  same "$(answers 20 page_of "$ip")" "$names" || fail "this machine reaches $(answers 20 page_of "$ip") at the cluster IP"
  same "$(answers 8 mine get http://sticky/hostname | wc -l)" 1 || fail "session affinity: $(answers 8 mine get http://sticky/hostname)"
  [[ "$(mine get http://none/ 2>&1)" == *"connection refused"* ]] || fail "a Service without pods: $(mine get http://none/ 2>&1)"
  for address in 192.0.2.1 10.88.0.1 127.0.0.1; do
    page_of $address:30080 >/dev/null || fail "this machine does not reach the node port at $address"
  done
  ip netns exec outside curl -sf -m 3 http://192.0.2.1:30080/hostname >/dev/null || fail "a node port is not reached from outside"
  ip netns exec outside curl -sf -m 3 http://192.0.2.1:30081/seen >/dev/null
  await "externalTrafficPolicy Local shows the client" eval '[[ "$(kubectl logs -l app=site --tail=-1)" =~ 192.0.2.53:[0-9]+\ GET\ /seen ]]'
  mine get http://local/hostname >/dev/null || fail "internalTrafficPolicy Local"
  curl -s -m 3 --cacert "$state/root/pki/ca.crt" -o /dev/null "https://$(field service kubernetes '{.spec.clusterIP}')/" || fail "this machine does not reach the API at its cluster IP"
  echo "ok: Services lead to their pods"

  nft delete table ip kube-proxy
  await "deleted rules are back" eval 'nft list chain ip kube-proxy services && page_of "$ip"'
  uses >"$state/failed" & local user=$!
  local first killed; first=$(apiserver) killed=$(dns)
  kill -9 $killed
  await "DNS is back" eval 'dns && [ "$(dns)" != "$killed" ] && mine lookup site'
  kill -9 $first
  await "the proxy is back" eval '[ "$(apiserver)" != "$first" ] && kubectl get --raw /readyz'
  touch "$state/used"; wait $user
  [ -s "$state/failed" ] && fail "calls failed: $(cat "$state/failed")"

  kubectl scale deployment site --replicas=1 || fail "scale"
  await "one pod is left" eval '[ "$(pods_of app=site,pod-template-hash metadata.name | wc -l)" = 1 ]'
  await "calls end at the one that is left" eval 'same "$(answers 10 mine get http://site/hostname)" "$(pods_of app=site,pod-template-hash metadata.name)"'
  await "a headless Service has the one that is left" eval 'same "$(mine lookup heads)" "$(pods_of app=site,pod-template-hash status.podIP)"'
  same "$(from 'serve :9001 /etc' get http://site/hostname)" "$(pods_of app=site,pod-template-hash metadata.name)" || fail "a pod does not reach itself by its Service"
  kubectl delete service/none service/sticky pod/unready --wait=false || fail "delete"
  echo "ok: Services and names survive the end of what serves them"
}

# bridge_netfilter_off is for the network of this machine alone. The next proxy masquerades.
bridge_netfilter_off() {
  local setting=/proc/sys/net/bridge/bridge-nf-call-iptables
  [ ! -e $setting ] || echo 0 >$setting
}
