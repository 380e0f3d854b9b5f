package main

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509/pkix"
	"encoding/base64"
	"regexp"
	"strings"
	"testing"

	"k8s.io/client-go/util/cert"
)

const pod = `
apiVersion: v1
kind: Pod
metadata: {name: web, namespace: shop, labels: {app: web}}
spec:
  containers: [{name: c, image: example}]
`

// TestKubectl runs kubectl against the program. Rows run in this order and build on each other.
func TestKubectl(t *testing.T) {
	i := start(t)
	for _, row := range []struct {
		name  string
		line  string
		stdin string
		want  string // a regular expression that the output matches
		fails bool
	}{
		{name: "version", line: "kubectl get --raw /version", want: `"emulationMinor": "37"`},
		{name: "create_namespace", line: "kubectl create namespace shop", want: "namespace/shop created"},
		{name: "default_service_account", line: "kubectl wait --for=create serviceaccount/default -n shop --timeout=20s", want: "condition met"},
		{name: "ca_of_namespace", line: "kubectl wait --for=create configmap/kube-root-ca.crt -n shop --timeout=20s", want: "condition met"},
		{name: "apply_creates", line: "kubectl apply -f -", stdin: pod, want: "pod/web created"},
		{name: "apply_again_changes_nothing", line: "kubectl apply -f -", stdin: pod, want: "pod/web unchanged"},
		{name: "pod_is_not_bound_before_the_node_registers", line: "kubectl get pod web -n shop -o jsonpath=node={.spec.nodeName}.", want: `node=\.`},
		{name: "kubelet_registers", line: "kubectl --kubeconfig=$PKI/kubelet.kubeconfig create -f - <<< '{apiVersion: v1, kind: Node, metadata: {name: lone}}' && kubectl get nodes", want: "node/lone created\nNAME +STATUS +ROLES +AGE +VERSION\nlone "},
		{name: "pod_is_bound", line: "kubectl wait --for=jsonpath={.spec.nodeName}=lone pod/web -n shop --timeout=10s", want: "condition met"},
		{name: "pod_has_defaults", line: "kubectl get pod web -n shop -o jsonpath={.spec.restartPolicy}/{.spec.serviceAccountName}/{.spec.tolerations[0].key}/{.status.qosClass}", want: "^Always/default/node.kubernetes.io/not-ready/BestEffort$"},
		{name: "pod_has_token_volume", line: "kubectl get pod web -n shop -o jsonpath={.spec.volumes[*].projected.sources[*].configMap.name}", want: "kube-root-ca.crt"},
		{name: "gated_pod_is_not_bound", line: "kubectl apply -f - && kubectl get pod gated -n shop -o jsonpath=node={.spec.nodeName}.", stdin: strings.Replace(strings.Replace(pod, "name: web", "name: gated", 1), "spec:", "spec:\n  schedulingGates: [{name: example.com/wait}]", 1), want: `node=\.`},
		{name: "pod_of_another_scheduler_is_not_bound", line: "kubectl apply -f - && kubectl get pod other -n shop -o jsonpath=node={.spec.nodeName}.", stdin: strings.Replace(strings.Replace(pod, "name: web", "name: other", 1), "spec:", "spec:\n  schedulerName: mine", 1), want: `node=\.`},
		{name: "invalid_pod", line: "kubectl apply -f -", stdin: strings.Replace(pod, "image: example", "image: example, imagePullPolicy: Often", 1), want: "Unsupported value: \"Often\"", fails: true},
		{name: "unknown_field", line: "kubectl apply -f -", stdin: strings.Replace(pod, "image:", "imagee:", 1), want: `unknown field "spec.containers\[0\].imagee"`, fails: true},
		{name: "table", line: "kubectl get pods -n shop", want: `NAME +READY +STATUS +RESTARTS +AGE\n(.*\n)*web +0/1 +Pending`},
		{name: "wide_table", line: "kubectl get pods -n shop -o wide", want: `NOMINATED NODE +READINESS GATES\n(.*\n)*web .* lone `},
		{name: "label_selector", line: "kubectl get pods -A -l app=web -o name", want: "^(pod/\\w+\n){3}$"},
		{name: "field_selector", line: "kubectl get pods -A --field-selector spec.nodeName=lone -o name", want: "^pod/web\n$"},
		{name: "field_selector_of_events", line: "kubectl get events -A --field-selector involvedObject.kind=Pod", want: "No resources found"},
		{name: "merge_patch", line: `kubectl patch pod web -n shop --type=merge -p '{"metadata":{"labels":{"a":"1"}}}'`, want: "pod/web patched"},
		{name: "strategic_patch", line: `kubectl patch pod web -n shop -p '{"spec":{"containers":[{"name":"c","image":"example:2"}]}}'`, want: "pod/web patched"},
		{name: "json_patch", line: `kubectl patch pod web -n shop --type=json -p '[{"op":"remove","path":"/metadata/labels/a"}]'`, want: "pod/web patched"},
		{name: "dry_run", line: "kubectl create configmap trial -n shop --from-literal=a=1 --dry-run=server && kubectl get configmap trial -n shop", want: `created \(server dry run\)\n.*not found`, fails: true},
		{name: "diff", line: "kubectl diff -f -", stdin: strings.Replace(pod, "app: web", "app: shop", 1), want: `(?m)^\+.*app: shop`, fails: true},
		{name: "server_side_apply", line: "kubectl apply --server-side --field-manager=one -f -", stdin: "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: settings, namespace: shop}\ndata: {colour: red}\n", want: "configmap/settings serverside-applied"},
		{name: "server_side_apply_conflict", line: "kubectl apply --server-side --field-manager=two -f -", stdin: "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: settings, namespace: shop}\ndata: {colour: blue}\n", want: `conflict with "one": .data.colour`, fails: true},
		{name: "server_side_apply_of_another_field", line: "kubectl apply --server-side --field-manager=two -f - && kubectl get configmap settings -n shop -o jsonpath={.data}", stdin: "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: settings, namespace: shop}\ndata: {size: big}\n", want: `{"colour":"red","size":"big"}`},
		{name: "status_patch", line: `kubectl patch pod web -n shop --subresource=status --type=merge -p '{"status":{"phase":"Running","conditions":[{"type":"Ready","status":"True"}]}}'`, want: "pod/web patched"},
		{name: "wait_for_condition", line: "kubectl wait --for=condition=Ready pod/web -n shop --timeout=10s", want: "condition met"},
		{name: "resize", line: `kubectl patch pod web -n shop --subresource=resize -p '{"spec":{"containers":[{"name":"c","resources":{"limits":{"cpu":"1"}}}]}}'`, want: "QOS Class", fails: true},
		{name: "ephemeral_container", line: "kubectl debug web -n shop --image=example -c probe && kubectl get pod web -n shop -o jsonpath={.spec.ephemeralContainers[*].name}", want: "probe"},
		{name: "explain", line: "kubectl explain pod.spec.containers.imagePullPolicy", want: "Image pull policy"},
		{name: "openapi_v2", line: "kubectl get --raw /openapi/v2 | cut -c 1-400", want: `"swagger":"2.0"`},
		{name: "openapi_v3", line: "kubectl get --raw /openapi/v3", want: `"apis/apps/v1":`},
		{name: "discovery", line: "kubectl get --raw /apis", want: `"name":"apps"`},
		{name: "watch_with_bookmarks", line: "kubectl get --raw '/api/v1/namespaces/shop/pods?watch=1&allowWatchBookmarks=true&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&timeoutSeconds=2'", want: `"type":"ADDED"(.*\n)*.*"type":"BOOKMARK".*k8s.io/initial-events-end`},
		{name: "watch_from_version", line: `kubectl get --raw "/api/v1/namespaces/shop/configmaps?watch=1&timeoutSeconds=3&resourceVersion=$(kubectl get configmap settings -n shop -o jsonpath={.metadata.resourceVersion})" & sleep 1; kubectl label configmap settings -n shop seen=yes; wait`, want: `"type":"MODIFIED".*"seen":"yes"`},

		{name: "get_yaml", line: "kubectl get pod web -n shop -o yaml", want: "(?m)^  nodeName: lone$"},
		{name: "get_watch", line: "timeout 1 kubectl get pods -n shop --watch --output-watch-events || true", want: "ADDED +web"},
		{name: "describe", line: "kubectl describe pod web -n shop", want: "Node: +lone"},
		{name: "dry_run_of_the_client", line: "kubectl create configmap trial -n shop --from-literal=a=1 --dry-run=client -o yaml", want: "kind: ConfigMap"},
		{name: "replace", line: "kubectl get configmap settings -n shop -o json | sed s/red/green/ | kubectl replace -f - && kubectl get configmap settings -n shop -o jsonpath={.data.colour}", want: "replaced\ngreen"},
		{name: "edit", line: `printf '#!/bin/sh\nsed -i s/green/pink/ "$1"\n' >$HOME/editor && chmod +x $HOME/editor && EDITOR=$HOME/editor kubectl edit configmap settings -n shop && kubectl get configmap settings -n shop -o jsonpath={.data.colour}`, want: "edited\npink"},
		{name: "label_and_annotate", line: "kubectl label pod web -n shop tier=front && kubectl annotate pod web -n shop note=x && kubectl get pods -n shop -l tier=front -o jsonpath={.items[*].metadata.annotations.note}", want: "x$"},
		{name: "explain_metrics", line: "kubectl explain podmetrics.containers.usage", want: "memory usage"},
		{name: "top_without_a_kubelet", line: "kubectl top node", want: "read statistics of kubelet", fails: true},
		{name: "metrics_of_no_pod", line: "kubectl get --raw /apis/metrics.k8s.io/v1beta1/namespaces/shop/pods/none", want: `"none" not found`, fails: true},
		{name: "view_may_read_metrics", line: "kubectl create rolebinding viewer -n shop --clusterrole=view --serviceaccount=shop:viewer; for n in 1 2 3 4 5 6 7 8 9; do kubectl auth can-i list pods.metrics.k8s.io -n shop --as=system:serviceaccount:shop:viewer && break; sleep 0.3; done", want: "(?m)^yes$"},
		{name: "api_resources", line: "kubectl api-resources --api-group=metrics.k8s.io", want: "nodes +metrics.k8s.io/v1 +false +NodeMetrics"},
		{name: "api_versions", line: "kubectl api-versions", want: "metrics.k8s.io/v1beta1"},
		{name: "cluster_info", line: "kubectl cluster-info", want: "control plane.* is running at"},
		{name: "config_view", line: "kubectl config view", want: "(DATA|REDACTED|OMITTED)"},
		{name: "proxy", line: `kubectl proxy --port=0 >$HOME/proxy & for n in {1..50}; do port=$(sed -n 's/.*127.0.0.1:\([0-9]*\).*/\1/p' $HOME/proxy); [ "$port" ] && break; sleep 0.1; done; curl -s http://127.0.0.1:$port/api/v1/namespaces/shop/pods/web; kill %1`, want: `"name": "web"`},
		{name: "completion", line: "kubectl completion bash | bash -n && kubectl __complete get pods -n shop w", want: "(?m)^web$"},
		{name: "kustomize", line: `mkdir $HOME/k && cat >$HOME/k/c.yaml && printf 'resources: [c.yaml]\nnamePrefix: pre-\n' >$HOME/k/kustomization.yaml && kubectl kustomize $HOME/k && kubectl apply -k $HOME/k`, stdin: "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: part, namespace: shop}\n", want: "configmap/pre-part created"},
		{name: "cordon_and_uncordon", line: "kubectl cordon lone && kubectl get nodes && kubectl uncordon lone", want: "(?s)SchedulingDisabled.*uncordoned"},
		{name: "taint", line: "kubectl taint node lone a=b:PreferNoSchedule && kubectl taint node lone a-", want: "tainted(.|\n)*untainted"},

		{name: "rbac_denies", line: "kubectl auth can-i list pods -n shop --as=system:serviceaccount:shop:default", want: "^no", fails: true},
		{name: "rbac_grants", line: "kubectl create role reader -n shop --verb=list --resource=pods && kubectl create rolebinding reader -n shop --role=reader --serviceaccount=shop:default; for n in 1 2 3 4 5 6 7 8 9; do kubectl auth can-i list pods -n shop --as=system:serviceaccount:shop:default && break; sleep 0.3; done", want: "(?m)^yes$"},
		{name: "rbac_lets_dns_read_services", line: "for n in 1 2 3 4 5 6 7 8 9; do kubectl --kubeconfig=$PKI/dns.kubeconfig get services,endpointslices,namespaces -A >/dev/null 2>&1 && echo reads && break; sleep 0.3; done; kubectl auth can-i list secrets --as=system:coredns", want: "^reads\nno", fails: true},
		{name: "bootstrap_roles", line: "kubectl get clusterrole view edit admin cluster-admin system:node -o name", want: "clusterrole.rbac.authorization.k8s.io/system:node"},
		{name: "token", line: "kubectl --kubeconfig=/dev/null --server=$SERVER --certificate-authority=$PKI/ca.crt --token=$(kubectl create token default -n shop) get pods -n shop -o name", want: "pod/web"},
		{name: "token_of_another_namespace", line: "kubectl --kubeconfig=/dev/null --server=$SERVER --certificate-authority=$PKI/ca.crt --token=$(kubectl create token default -n shop) get pods -n default", want: "Forbidden", fails: true},
		{name: "no_credentials", line: "kubectl --kubeconfig=/dev/null --server=$SERVER --certificate-authority=$PKI/ca.crt --token=x get pods", want: "Unauthorized", fails: true},
		{name: "token_review", line: `kubectl create -o jsonpath={.status.user.username} -f - <<< "{apiVersion: authentication.k8s.io/v1, kind: TokenReview, spec: {token: $(kubectl create token default -n shop)}}"`, want: "^system:serviceaccount:shop:default$"},
		{name: "whoami", line: "kubectl auth whoami -o jsonpath={.status.userInfo.groups}", want: "system:masters"},
		{name: "kubelet_may_only_change_its_node", line: "kubectl --kubeconfig=$PKI/kubelet.kubeconfig create -f - <<< '{apiVersion: v1, kind: Node, metadata: {name: another}}'", want: `node "lone" is not allowed to modify node "another"`, fails: true},
		{name: "new_node_has_no_taint", line: "kubectl get node lone -o jsonpath=taints={.spec.taints}.", want: `^taints=\.$`},
		{name: "certificate_request", line: "kubectl create -f - && kubectl certificate approve jane && kubectl wait --for=jsonpath='{.status.certificate}' csr/jane --timeout=20s && kubectl get csr jane", stdin: "{apiVersion: certificates.k8s.io/v1, kind: CertificateSigningRequest, metadata: {name: jane}, spec: {signerName: kubernetes.io/kube-apiserver-client, usages: [client auth], request: " + base64.StdEncoding.EncodeToString(certificateRequest(t, "jane")) + "}}", want: "Approved,Issued"},

		{name: "deployment", line: "kubectl create deployment shop -n shop --image=example --replicas=2 && kubectl scale deployment shop -n shop --replicas=3 && kubectl get deployments -n shop", want: `NAME +READY +UP-TO-DATE +AVAILABLE +AGE\nshop +0/3`},
		{name: "set", line: "kubectl set image deployment/shop -n shop example=example:2 && kubectl set env deployment/shop -n shop A=1 && kubectl set resources deployment/shop -n shop --requests=cpu=1m && kubectl get deployment shop -n shop -o jsonpath='{.spec.template.spec.containers[0].image} {..env[0].name} {..requests.cpu}'", want: "example:2 A 1m$"},
		{name: "rollout_pause_resume_restart", line: "kubectl rollout pause deployment/shop -n shop && kubectl rollout resume deployment/shop -n shop && kubectl rollout restart deployment/shop -n shop", want: "(?s)paused.*resumed.*restarted"},
		{name: "autoscale", line: "kubectl autoscale deployment shop -n shop --max=3 --cpu=50% && kubectl wait --for=condition=AbleToScale hpa/shop -n shop --timeout=20s && kubectl delete hpa shop -n shop", want: "condition met"},
		{name: "expose", line: "kubectl expose deployment shop -n shop --port=80 && kubectl get service shop -n shop", want: "shop +ClusterIP"},
		{name: "events", line: "kubectl events -n shop --for deployment/shop", want: "ScalingReplicaSet"},
		{name: "job", line: "kubectl create job once -n shop --image=example && kubectl get jobs -n shop", want: "once +\\S* *0/1"},
		{name: "cron_job", line: "kubectl create cronjob nightly -n shop --image=example --schedule='0 3 * * *' && kubectl get cronjobs -n shop", want: "nightly +0 3"},
		{name: "service", line: "kubectl create service clusterip web -n shop --tcp=80 && kubectl get service web -n shop", want: `web +ClusterIP +10\.89\.`},
		{name: "priority_classes", line: "kubectl get priorityclasses -o name", want: "system-node-critical"},
		{name: "custom_resource", line: "kubectl create -f - && kubectl wait --for=condition=Established crd/shelves.example.com --timeout=20s", stdin: `
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: shelves.example.com}
spec:
  group: example.com
  names: {kind: Shelf, plural: shelves}
  scope: Namespaced
  versions:
  - name: v1
    served: true
    storage: true
    schema: {openAPIV3Schema: {type: object, properties: {height: {type: integer, description: How high it is.}}}}
`, want: "condition met"},
		{name: "custom_object", line: "for n in 1 2 3 4 5 6 7 8 9; do kubectl apply -f - && break; sleep 0.5; done <<< '{apiVersion: example.com/v1, kind: Shelf, metadata: {name: top, namespace: shop}, height: 2}'; kubectl get shelves -n shop -o name", want: "shelf.example.com/top"},
		{name: "explain_custom_resource", line: "kubectl explain shelf.height", want: "How high it is"},
		{name: "openapi_v2_of_custom_resource", line: `for n in {1..20}; do kubectl get --raw /openapi/v2 >$HOME/v2 && grep -o 'com.example.v1.Shelf"' $HOME/v2 | head -1 && break; sleep 0.3; done; grep -o 'How high it is' $HOME/v2 && grep -o '"/api/v1/namespaces/{namespace}/pods"' $HOME/v2`, want: "(?s)Shelf.*How high it is.*pods"},

		{name: "eviction", line: "kubectl create --raw /api/v1/namespaces/shop/pods/other/eviction -f -", stdin: `{"apiVersion":"policy/v1","kind":"Eviction","metadata":{"name":"other","namespace":"shop"}}`, want: `"status":"Success"`},
		{name: "delete", line: "kubectl delete pod web -n shop --force --grace-period=0", want: `pod "web" force deleted`},
		{name: "delete_workloads", line: "kubectl delete deployment,job,cronjob --all -n shop && kubectl delete pods --all -n shop --force --grace-period=0", want: `deployment.apps "shop" deleted`}, // there is no kubelet to end pods
		{name: "delete_namespace", line: "kubectl delete namespace shop --timeout=50s", want: `namespace "shop" deleted`},
	} {
		t.Run(row.name, func(t *testing.T) {
			i.t = t
			out, err := i.run(row.line, row.stdin)
			if (err != nil) != row.fails {
				t.Errorf("%s: %v\n%s", row.line, err, out)
			}
			if !regexp.MustCompile(row.want).MatchString(out) {
				t.Errorf("%s: got\n%s\nwant a match of %s", row.line, out, row.want)
			}
		})
	}
}

// TestResources lists the resources that a node with pods, workloads and services needs.
func TestResources(t *testing.T) {
	i := start(t)
	served := map[string]bool{}
	for _, name := range strings.Fields(i.must("kubectl api-resources -o name", "")) {
		served[name] = true
	}
	for _, want := range strings.Fields(`
		pods configmaps secrets serviceaccounts events events.events.k8s.io namespaces nodes services endpoints
		persistentvolumes persistentvolumeclaims resourcequotas limitranges podtemplates replicationcontrollers
		leases.coordination.k8s.io runtimeclasses.node.k8s.io endpointslices.discovery.k8s.io
		csidrivers.storage.k8s.io csinodes.storage.k8s.io storageclasses.storage.k8s.io volumeattachments.storage.k8s.io
		priorityclasses.scheduling.k8s.io poddisruptionbudgets.policy networkpolicies.networking.k8s.io
		resourceclaims.resource.k8s.io resourceclaimtemplates.resource.k8s.io resourceslices.resource.k8s.io deviceclasses.resource.k8s.io
		deployments.apps replicasets.apps statefulsets.apps daemonsets.apps controllerrevisions.apps jobs.batch cronjobs.batch
		roles.rbac.authorization.k8s.io rolebindings.rbac.authorization.k8s.io clusterroles.rbac.authorization.k8s.io clusterrolebindings.rbac.authorization.k8s.io
		tokenreviews.authentication.k8s.io selfsubjectreviews.authentication.k8s.io subjectaccessreviews.authorization.k8s.io
		selfsubjectaccessreviews.authorization.k8s.io selfsubjectrulesreviews.authorization.k8s.io localsubjectaccessreviews.authorization.k8s.io
		certificatesigningrequests.certificates.k8s.io customresourcedefinitions.apiextensions.k8s.io`) {
		if !served[want] {
			t.Errorf("%s is not served", want)
		}
	}
	subresources := i.must("kubectl get --raw /api/v1", "")
	for _, want := range strings.Fields(`pods/log pods/exec pods/attach pods/portforward pods/proxy pods/eviction pods/ephemeralcontainers
		pods/resize pods/status pods/binding nodes/proxy nodes/status serviceaccounts/token`) {
		if !strings.Contains(subresources, `"`+want+`"`) {
			t.Errorf("%s is not served", want)
		}
	}
}

// certificateRequest returns a request in PEM.
func certificateRequest(t *testing.T, name string) []byte {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	request, err := cert.MakeCSR(key, &pkix.Name{CommonName: name}, nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	return request
}
