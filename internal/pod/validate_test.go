package pod

import (
	"path/filepath"
	"testing"
)

func TestValidStaticPods(t *testing.T) {
	files, err := filepath.Glob("testdata/static/*.yaml")
	if err != nil || len(files) == 0 {
		t.Fatalf("no cases: %v", err)
	}
	for _, file := range files {
		p := readPod(t, file)
		MakeStatic(p, Origin{Source: SourceFile, Location: file, NodeName: "node-1"}, nil)
		if err := Validate(p); err != nil {
			t.Errorf("%s: %v", file, err)
		}
		if err := CheckNoAPIReference(p); err != nil {
			t.Errorf("%s: %v", file, err)
		}
	}
}

func TestValidate(t *testing.T) {
	for name, tc := range map[string]struct{ pod, err string }{
		"bad name": {
			`{metadata: {name: Web_1}, spec: {containers: [{name: c, image: x}]}}`,
			`metadata.name: Invalid value: "Web_1-node-1": a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')`},
		"no container": {
			`{metadata: {name: a}}`,
			`spec.containers: Required value`},
		"no image": {
			`{metadata: {name: a}, spec: {containers: [{name: c}]}}`,
			`spec.containers[0].image: Required value`},
		"duplicate container name": {
			`{metadata: {name: a}, spec: {initContainers: [{name: c, image: x}], containers: [{name: c, image: x}]}}`,
			`spec.containers[0].name: Duplicate value: "c"`},
		"port out of range": {
			`{metadata: {name: a}, spec: {containers: [{name: c, image: x, ports: [{containerPort: 70000}]}]}}`,
			`spec.containers[0].ports[0].containerPort: Invalid value: 70000: must be between 1 and 65535, inclusive`},
		"duplicate host port": {
			`{metadata: {name: a}, spec: {containers: [{name: c, image: x, ports: [{containerPort: 1, hostPort: 80}]}, {name: d, image: x, ports: [{containerPort: 2, hostPort: 80}]}]}}`,
			`spec.containers[1].ports[0].hostPort: Duplicate value: "TCP//80"`},
		"mount of an unknown volume": {
			`{metadata: {name: a}, spec: {containers: [{name: c, image: x, volumeMounts: [{name: gone, mountPath: /x}]}]}}`,
			`spec.containers[0].volumeMounts[0].name: Not found: "gone"`},
		"sub path leaves the volume": {
			`{metadata: {name: a}, spec: {volumes: [{name: v}], containers: [{name: c, image: x, volumeMounts: [{name: v, mountPath: /x, subPath: ../../etc}]}]}}`,
			`spec.containers[0].volumeMounts[0].subPath: Invalid value: "../../etc": must not contain '..'`},
		"request above limit": {
			`{metadata: {name: a}, spec: {containers: [{name: c, image: x, resources: {requests: {cpu: 2}, limits: {cpu: 1}}}]}}`,
			`spec.containers[0].resources.requests: Invalid value: "2": must be less than or equal to cpu limit of 1`},
		"unknown restart policy": {
			`{metadata: {name: a}, spec: {restartPolicy: Sometimes, containers: [{name: c, image: x}]}}`,
			`spec.restartPolicy: Unsupported value: "Sometimes": supported values: "Always", "OnFailure", "Never"`},
		"probe of an init container": {
			`{metadata: {name: a}, spec: {initContainers: [{name: i, image: x, livenessProbe: {tcpSocket: {port: 1}}}], containers: [{name: c, image: x}]}}`,
			`spec.initContainers[0].livenessProbe: Forbidden: may not be set for init containers without restartPolicy=Always`},
		"probe without a handler": {
			`{metadata: {name: a}, spec: {containers: [{name: c, image: x, readinessProbe: {}}]}}`,
			`spec.containers[0].readinessProbe: Required value: must specify a handler type`},
		"two volume kinds": {
			`{metadata: {name: a}, spec: {volumes: [{name: v, emptyDir: {}, hostPath: {path: /x}}], containers: [{name: c, image: x}]}}`,
			`spec.volumes[0]: Forbidden: may not specify more than 1 volume type`},
		"file name that begins with ..": {
			`{metadata: {name: a}, spec: {volumes: [{name: v, configMap: {name: m, items: [{key: k, path: ..data}]}}], containers: [{name: c, image: x}]}}`,
			`spec.volumes[0].configMap.items[0].path: Invalid value: "..data": must not start with '..'`},
		"several errors": {
			`{metadata: {name: a}, spec: {dnsPolicy: None, containers: [{name: c}]}}`,
			`[spec.containers[0].image: Required value, spec.dnsConfig.nameservers: Required value: must have at least one name server when dnsPolicy is None]`},
	} {
		t.Run(name, func(t *testing.T) {
			p := parsePod(t, tc.pod)
			MakeStatic(p, Origin{Source: SourceFile, Location: "/m/a.yaml", NodeName: "node-1"}, nil)
			err := Validate(p)
			if err == nil || err.Error() != tc.err {
				t.Errorf("error\n%v\nwant\n%v", err, tc.err)
			}
		})
	}
}

func TestAPIReference(t *testing.T) {
	for spec, want := range map[string]string{
		`{containers: [{name: c}]}`:                                       "",
		`{serviceAccountName: a}`:                                         "serviceaccounts",
		`{imagePullSecrets: [{name: a}]}`:                                 "secrets",
		`{containers: [{name: c, envFrom: [{configMapRef: {name: a}}]}]}`: "configmaps",
		`{initContainers: [{name: c, env: [{name: A, valueFrom: {secretKeyRef: {name: a, key: b}}}]}]}`: "secrets",
		`{volumes: [{name: v, persistentVolumeClaim: {claimName: a}}]}`:                                 "persistentvolumeclaims",
		`{volumes: [{name: v, projected: {sources: [{serviceAccountToken: {path: t}}]}}]}`:              "serviceaccounts (via projected volumes)",
		`{volumes: [{name: v, projected: {sources: [{downwardAPI: {}}]}}]}`:                             "",
		`{volumes: [{name: v, hostPath: {path: /x}}]}`:                                                  "",
		`{resourceClaims: [{name: a}]}`:                                                                 "resourceclaims",
	} {
		if got := apiReference(parsePod(t, "spec: "+spec)); got != want {
			t.Errorf("%s: %q, want %q", spec, got, want)
		}
	}
}
