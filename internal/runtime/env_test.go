package runtime

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"sigs.k8s.io/yaml"
)

func TestEnvironment(t *testing.T) {
	const services = "KUBERNETES_"
	for name, c := range map[string]struct {
		container string
		want      []EnvVar // without the services', which TestServiceEnvs looks at
		message   string   // of the failure that the pod's status shows
	}{
		"variables keep the declared order": {
			container: `{env: [{name: Z, value: "1"}, {name: A, value: "2"}]}`,
			want:      []EnvVar{{"Z", "1"}, {"A", "2"}},
		},
		"a variable refers to an earlier one": {
			container: `{env: [{name: A, value: "$(B)"}, {name: B, value: b}, {name: C, value: "$(A)$(B)"}]}`,
			want:      []EnvVar{{"A", "$(B)"}, {"B", "b"}, {"C", "$(B)b"}},
		},
		"a variable refers to a service": {
			container: `{env: [{name: A, value: "$(KUBERNETES_SERVICE_HOST)"}]}`,
			want:      []EnvVar{{"A", "10.96.0.1"}},
		},
		"env overrides envFrom and keeps its position": {
			container: `{envFrom: [{configMapRef: {name: cm}}], env: [{name: file.txt, value: own}]}`,
			want:      []EnvVar{{"file.txt", "own"}, {"key", "value"}},
		},
		"a later envFrom overrides an earlier one": {
			container: `{envFrom: [{prefix: P_, secretRef: {name: sec}}, {prefix: P_, secretRef: {name: other}}]}`,
			want:      []EnvVar{{"P_password", "new"}},
		},
		"a variable without a value is empty": {
			container: `{env: [{name: A}]}`,
			want:      []EnvVar{{"A", ""}},
		},
		"fieldRef": {
			container: `{env: [
				{name: A, valueFrom: {fieldRef: {fieldPath: metadata.namespace}}},
				{name: B, valueFrom: {fieldRef: {fieldPath: metadata.uid}}},
				{name: C, valueFrom: {fieldRef: {fieldPath: "metadata.labels['app']"}}},
				{name: D, valueFrom: {fieldRef: {fieldPath: "metadata.annotations['none']"}}},
				{name: E, valueFrom: {fieldRef: {fieldPath: metadata.labels}}},
				{name: F, valueFrom: {fieldRef: {fieldPath: status.podIPs}}},
				{name: G, valueFrom: {fieldRef: {fieldPath: status.hostIP}}},
				{name: H, valueFrom: {fieldRef: {fieldPath: spec.serviceAccountName}}}]}`,
			want: []EnvVar{{"A", "golden"}, {"B", "uid"}, {"C", "web"}, {"D", ""}, {"E", "app=\"web\"\nx=\"\\\"\""}, {"F", "10.0.0.1,fd00::1"}, {"G", "192.0.2.2"}, {"H", "sa"}},
		},
		"resourceFieldRef": {
			container: `{resources: {limits: {memory: 100Mi, hugepages-2Mi: 4Mi}, requests: {cpu: 1500m}}, env: [
				{name: A, valueFrom: {resourceFieldRef: {resource: limits.memory, divisor: 1Mi}}},
				{name: B, valueFrom: {resourceFieldRef: {resource: requests.cpu}}},
				{name: C, valueFrom: {resourceFieldRef: {resource: requests.cpu, divisor: 1m}}},
				{name: D, valueFrom: {resourceFieldRef: {resource: limits.cpu}}},
				{name: E, valueFrom: {resourceFieldRef: {resource: limits.hugepages-2Mi}}},
				{name: F, valueFrom: {resourceFieldRef: {resource: requests.memory}}},
				{name: G, valueFrom: {resourceFieldRef: {containerName: other, resource: limits.cpu, divisor: 1m}}}]}`,
			want: []EnvVar{{"A", "100"}, {"B", "2"}, {"C", "1500"}, {"D", "2"}, {"E", "4194304"}, {"F", "0"}, {"G", "250"}},
		},
		"optional objects and keys that do not exist": {
			container: `{envFrom: [{configMapRef: {name: none, optional: true}}, {secretRef: {name: none, optional: true}}], env: [
				{name: A, valueFrom: {configMapKeyRef: {name: cm, key: none, optional: true}}},
				{name: B, valueFrom: {secretKeyRef: {name: none, key: none, optional: true}}}]}`,
		},
		"fileKeyRef": {
			container: `{env: [{name: A, valueFrom: {fileKeyRef: {volumeName: v, path: envs, key: ONE}}},
				{name: B, valueFrom: {fileKeyRef: {volumeName: v, path: envs, key: NONE, optional: true}}}]}`,
			want: []EnvVar{{"A", "first"}},
		},
		"fileKeyRef to a missing key fails": {
			container: `{env: [{name: A, valueFrom: {fileKeyRef: {volumeName: v, path: envs, key: NONE}}}]}`,
			message:   `environment variable key "NONE" not found in file "envs"`,
		},
		"fileKeyRef outside the volume fails": {
			container: `{env: [{name: A, valueFrom: {fileKeyRef: {volumeName: v, path: link, key: ONE}}}]}`,
			message:   "couldn't parse env file",
		},
		"fileKeyRef to a missing volume fails": {
			container: `{env: [{name: A, valueFrom: {fileKeyRef: {volumeName: none, path: envs, key: ONE}}}]}`,
			message:   `cannot find the volume "none" referenced by FileKeyRef`,
		},
		"missing config map fails":                  {container: `{envFrom: [{configMapRef: {name: none}}]}`, message: `configmap "none" not found`},
		"missing secret fails":                      {container: `{env: [{name: A, valueFrom: {secretKeyRef: {name: none, key: k}}}]}`, message: `secret "none" not found`},
		"missing config map key fails":              {container: `{env: [{name: A, valueFrom: {configMapKeyRef: {name: cm, key: k}}}]}`, message: "couldn't find key k in ConfigMap golden/cm"},
		"missing secret key fails":                  {container: `{env: [{name: A, valueFrom: {secretKeyRef: {name: sec, key: k}}}]}`, message: "couldn't find key k in Secret golden/sec"},
		"unsupported field fails":                   {container: `{env: [{name: A, valueFrom: {fieldRef: {fieldPath: spec.volumes}}}]}`, message: "field label not supported: spec.volumes"},
		"field that has no variable fails":          {container: `{env: [{name: A, valueFrom: {fieldRef: {fieldPath: status.phase}}}]}`, message: "unsupported fieldPath: status.phase"},
		"subscript of a field that is no map fails": {container: `{env: [{name: A, valueFrom: {fieldRef: {fieldPath: "metadata.name['a']"}}}]}`, message: "field label does not support subscript: metadata.name['a']"},
		"unsupported resource fails":                {container: `{env: [{name: A, valueFrom: {resourceFieldRef: {resource: limits.gpu}}}]}`, message: "unsupported container resource : limits.gpu"},
		"resource of a missing container fails":     {container: `{env: [{name: A, valueFrom: {resourceFieldRef: {containerName: none, resource: limits.cpu}}}]}`, message: "container none not found"},
		"resource without requests or limits fails": {container: `{env: [{name: A, valueFrom: {resourceFieldRef: {resource: cpu}}}]}`, message: "unsupported container resource : cpu"},
	} {
		t.Run(name, func(t *testing.T) {
			volume := t.TempDir()
			writeFile(t, filepath.Join(volume, "envs"), "ONE='first'\n")
			writeFile(t, filepath.Join(volume, "..", "outside"), "ONE='host'\n")
			if err := os.Symlink("../outside", filepath.Join(volume, "link")); err != nil {
				t.Fatal(err)
			}
			in := envInput(t, c.container)
			in.VolumePath = func(name string) (string, bool) { return volume, name == "v" }
			sources := goldenSources().(*fakeSources)
			sources.secrets["golden/other"] = map[string]string{"password": "new"}
			got, err := Environment(context.Background(), in, sources)
			if c.message != "" {
				var known *Error
				if !errors.As(err, &known) || known.Reason != ReasonContainerConfig || known.Message != c.message {
					t.Fatalf("error %+v, want %q", err, c.message)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			got = slices.DeleteFunc(got, func(e EnvVar) bool { return len(e.Name) > len(services) && e.Name[:len(services)] == services })
			got = slices.DeleteFunc(got, func(e EnvVar) bool { return len(e.Name) > 4 && e.Name[:4] == "WEB_" })
			if diff := gocmp.Diff(c.want, got, gocmp.Transformer("nil", func(e []EnvVar) []EnvVar { return append([]EnvVar{}, e...) })); diff != "" {
				t.Errorf("(-want +got)\n%s", diff)
			}
		})
	}
}

func envInput(t *testing.T, container string) EnvInput {
	t.Helper()
	yes := true
	p := &v1.Pod{}
	p.Name, p.Namespace, p.UID = "p", "golden", "uid"
	p.Labels = map[string]string{"app": "web", "x": `"`}
	p.Spec.EnableServiceLinks, p.Spec.ServiceAccountName = &yes, "sa"
	var c v1.Container
	if err := yaml.UnmarshalStrict([]byte(container), &c); err != nil {
		t.Fatal(err)
	}
	other := v1.Container{Name: "other"}
	other.Resources.Limits = v1.ResourceList{v1.ResourceCPU: resource.MustParse("250m")}
	p.Spec.Containers = []v1.Container{c, other}
	return EnvInput{Pod: p, Container: &p.Spec.Containers[0], PodIPs: []string{"10.0.0.1", "fd00::1"}, HostIPs: []string{"192.0.2.2"},
		Allocatable: v1.ResourceList{v1.ResourceCPU: resource.MustParse("2")}}
}

func writeFile(t *testing.T, path, content string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
}

func TestEnvironmentReadsEachObjectOnce(t *testing.T) {
	in := envInput(t, `{envFrom: [{configMapRef: {name: cm}}], env: [{name: A, valueFrom: {configMapKeyRef: {name: cm, key: key}}}]}`)
	sources := goldenSources().(*fakeSources)
	if _, err := Environment(context.Background(), in, sources); err != nil || sources.reads != 1 {
		t.Errorf("%d reads, %v", sources.reads, err)
	}
}

func TestServiceEnvs(t *testing.T) {
	no := false
	headless := &v1.Service{Spec: v1.ServiceSpec{ClusterIP: v1.ClusterIPNone, Ports: []v1.ServicePort{{Port: 1}}}}
	headless.Namespace, headless.Name = "golden", "headless"
	elsewhere := &v1.Service{Spec: v1.ServiceSpec{ClusterIP: "10.96.0.9", Ports: []v1.ServicePort{{Port: 1}}}}
	elsewhere.Namespace, elsewhere.Name = "other", "elsewhere"
	sources := goldenSources().(*fakeSources)
	sources.services = append(sources.services, headless, elsewhere)
	in := envInput(t, `{env: [{name: WEB_PORT, value: own}]}`)

	got, err := Environment(context.Background(), in, sources)
	if err != nil {
		t.Fatal(err)
	}
	want := []EnvVar{
		{"WEB_PORT", "own"},
		{"KUBERNETES_SERVICE_HOST", "10.96.0.1"}, {"KUBERNETES_SERVICE_PORT", "443"}, {"KUBERNETES_SERVICE_PORT_HTTPS", "443"},
		{"KUBERNETES_PORT", "tcp://10.96.0.1:443"}, {"KUBERNETES_PORT_443_TCP", "tcp://10.96.0.1:443"},
		{"KUBERNETES_PORT_443_TCP_PROTO", "tcp"}, {"KUBERNETES_PORT_443_TCP_PORT", "443"}, {"KUBERNETES_PORT_443_TCP_ADDR", "10.96.0.1"},
		{"WEB_SERVICE_HOST", "10.96.14.208"}, {"WEB_SERVICE_PORT", "80"}, {"WEB_SERVICE_PORT_HTTP", "80"},
		{"WEB_PORT_80_TCP", "tcp://10.96.14.208:80"}, {"WEB_PORT_80_TCP_PROTO", "tcp"}, {"WEB_PORT_80_TCP_PORT", "80"}, {"WEB_PORT_80_TCP_ADDR", "10.96.14.208"},
	}
	if diff := gocmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}

	in.Pod.Spec.EnableServiceLinks = &no
	got, err = Environment(context.Background(), in, sources)
	if diff := gocmp.Diff(want[:9], got); err != nil || diff != "" {
		t.Errorf("without links: %v (-want +got)\n%s", err, diff)
	}

	sources.synced = false
	if _, err := Environment(context.Background(), in, sources); !errors.Is(err, errServicesNotSynced) {
		t.Errorf("an API pod did not wait for services: %v", err)
	}
	in.Pod.Annotations = map[string]string{"kubernetes.io/config.source": "file"}
	if _, err := Environment(context.Background(), in, sources); err != nil {
		t.Errorf("a static pod waited for services: %v", err)
	}
}

func TestParseEnvFile(t *testing.T) {
	for name, c := range map[string]struct {
		text, key, want string
		bad             bool
	}{
		"second of two lines":                {"A='1'\nB='2'\n", "B", "2", false},
		"last line without newline":          {"A='1'", "A", "1", false},
		"comments and blank lines":           {"# A='0'\n\n  A='1' # one\n", "A", "1", false},
		"value with newlines":                {"A='1\n2='\nB='3'", "A", "1\n2=", false},
		"key after a value with newlines":    {"A='1\nB=2'\nB='3'", "B", "3", false},
		"value is literal":                   {`A='$(x) \n "'`, "A", `$(x) \n "`, false},
		"blank after = makes an empty value": {"A= 'x'\nB='1'", "A", "", false},
		"key after an empty value":           {"A= 'x'\nB='1'", "B", "1", false},
		"key not in the file":                {"A='1'", "B", "", false},
		"value without quotes":               {"A=1", "A", "", true},
		"blank before = is an error":         {"A ='1'", "A", "", true},
		"line without name":                  {"='1'", "A", "", true},
		"line without =":                     {"A\n", "A", "", true},
		"quote without end":                  {"A='1\n", "A", "", true},
		"text after the closing quote":       {"A='1'2", "A", "", true},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := parseEnvFile(c.text, c.key)
			if got != c.want || (err != nil) != c.bad {
				t.Errorf("got %q %v, want %q bad=%v", got, err, c.want, c.bad)
			}
		})
	}
}

func FuzzParseEnvFile(f *testing.F) {
	f.Add("A='1'\nB= x\n# c\nC='\n'", "C")
	f.Fuzz(func(t *testing.T, text, key string) {
		if value, err := parseEnvFile(text, key); err == nil && len(value) > len(text) {
			t.Errorf("%q is more than the file", value)
		}
	})
}
