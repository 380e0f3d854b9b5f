package pod

import (
	"testing"

	v1 "k8s.io/api/core/v1"
	"sigs.k8s.io/yaml"
)

// FuzzManifest: a pod of a manifest, whatever its fields, is rejected or gets its defaults, which are stable.
func FuzzManifest(f *testing.F) {
	f.Add([]byte("metadata: {name: a, namespace: b}\nspec: {containers: [{name: c, image: i, ports: [{containerPort: 80}]}], volumes: [{name: v, emptyDir: {}}]}\n"))
	f.Add([]byte("spec: {containers: [{}], initContainers: [{restartPolicy: Always}], volumes: [{}], securityContext: null}\n"))
	f.Add([]byte("spec: {containers: [{name: c, resources: {limits: {cpu: -1}}, livenessProbe: {httpGet: {port: x}}}]}\n"))
	f.Fuzz(func(t *testing.T, data []byte) {
		var p v1.Pod
		if yaml.Unmarshal(data, &p) != nil {
			return
		}
		Default(&p)
		again := p.DeepCopy()
		Default(again)
		if first, second := mustYAML(t, &p), mustYAML(t, again); first != second {
			t.Errorf("defaults are not stable:\n%s\n%s", first, second)
		}
		_ = Validate(&p)
		_ = apiReference(&p)
		for c := range Containers(&p) {
			if c == nil {
				t.Error("a container is nil")
			}
		}
	})
}

func mustYAML(t *testing.T, p *v1.Pod) string {
	t.Helper()
	text, err := yaml.Marshal(p)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}
