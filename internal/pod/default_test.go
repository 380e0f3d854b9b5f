package pod

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

// All defaults of a pod that has only a container's name and image.
func TestDefaultOfMinimalPod(t *testing.T) {
	got := parsePod(t, `spec: {containers: [{name: c, image: "busybox:1.36", ports: [{containerPort: 80}]}]}`)
	Default(got)
	want := parsePod(t, `
spec:
  containers:
  - name: c
    image: busybox:1.36
    imagePullPolicy: IfNotPresent
    ports: [{containerPort: 80, protocol: TCP}]
    terminationMessagePath: /dev/termination-log
    terminationMessagePolicy: File
  dnsPolicy: ClusterFirst
  enableServiceLinks: true
  restartPolicy: Always
  schedulerName: default-scheduler
  securityContext: {}
  terminationGracePeriodSeconds: 30`)
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func TestDefaultIsIdempotent(t *testing.T) {
	once := readPod(t, "testdata/static/everything.yaml")
	Default(once)
	twice := once.DeepCopy()
	Default(twice)
	if diff := cmp.Diff(once, twice); diff != "" {
		t.Error(diff)
	}
}

func TestDefaultFields(t *testing.T) {
	for name, tc := range map[string]struct{ spec, expects string }{
		"probes": {
			`containers: [{name: c, livenessProbe: {httpGet: {port: 80}}, startupProbe: {grpc: {port: 80}, periodSeconds: 2}}]`,
			`containers: [{name: c, livenessProbe: {httpGet: {port: 80, path: /, scheme: HTTP}, timeoutSeconds: 1, periodSeconds: 10, successThreshold: 1, failureThreshold: 3},
			 startupProbe: {grpc: {port: 80, service: ""}, timeoutSeconds: 1, periodSeconds: 2, successThreshold: 1, failureThreshold: 3}}]`},
		"requests follow limits": {
			`containers: [{name: c, resources: {limits: {cpu: 1, memory: 1Gi}, requests: {cpu: 100m}}}]`,
			`containers: [{name: c, resources: {limits: {cpu: 1, memory: 1Gi}, requests: {cpu: 100m, memory: 1Gi}}}]`},
		"host network": {
			`hostNetwork: true, containers: [{name: c, ports: [{containerPort: 80}, {containerPort: 81, hostPort: 82}]}]`,
			`hostNetwork: true, containers: [{name: c, ports: [{containerPort: 80, hostPort: 80, protocol: TCP}, {containerPort: 81, hostPort: 82, protocol: TCP}]}]`},
		"deprecated serviceAccount": {
			`serviceAccount: a, containers: []`,
			`serviceAccount: a, serviceAccountName: a, containers: []`},
		"volume modes": {
			`volumes: [{name: a, secret: {secretName: s}}, {name: b, configMap: {name: c}}, {name: c}, {name: d, hostPath: {path: /x}},
			 {name: e, projected: {sources: [{serviceAccountToken: {path: t}}]}}, {name: f, downwardAPI: {items: [{path: p, fieldRef: {fieldPath: metadata.name}}]}}]`,
			`volumes: [{name: a, secret: {secretName: s, defaultMode: 0644}}, {name: b, configMap: {name: c, defaultMode: 0644}}, {name: c, emptyDir: {}}, {name: d, hostPath: {path: /x, type: ""}},
			 {name: e, projected: {defaultMode: 0644, sources: [{serviceAccountToken: {path: t, expirationSeconds: 3600}}]}},
			 {name: f, downwardAPI: {defaultMode: 0644, items: [{path: p, fieldRef: {apiVersion: v1, fieldPath: metadata.name}}]}}]`},
	} {
		t.Run(name, func(t *testing.T) {
			got, want := parsePod(t, "spec: {"+tc.spec+"}"), parsePod(t, "spec: {"+tc.expects+"}")
			Default(got)
			// Other defaults are those of the minimal pod.
			for i := range want.Spec.Containers {
				c := &want.Spec.Containers[i]
				c.ImagePullPolicy, c.TerminationMessagePath, c.TerminationMessagePolicy = "IfNotPresent", "/dev/termination-log", "File"
			}
			defaultSpec(&want.Spec)
			defaultGracePeriod(&want.Spec)
			if diff := cmp.Diff(want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestPullPolicy(t *testing.T) {
	for image, want := range map[string]string{
		"busybox":                       "Always",
		"busybox:latest":                "Always",
		"busybox:1.36":                  "IfNotPresent",
		"example.com:5000/a":            "Always",
		"example.com:5000/a:v1":         "IfNotPresent",
		"a@sha256:" + digits(64):        "IfNotPresent",
		"Not An Image":                  "IfNotPresent",
		"x:latest@sha256:" + digits(64): "Always",
	} {
		if got := pullPolicy(image); string(got) != want {
			t.Errorf("%s: %s, want %s", image, got, want)
		}
	}
}

func digits(n int) string {
	b := make([]byte, n)
	for i := range b {
		b[i] = 'a'
	}
	return string(b)
}
