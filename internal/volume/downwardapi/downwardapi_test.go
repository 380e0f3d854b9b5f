package downwardapi

import (
	"testing"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

var testPod = &v1.Pod{
	ObjectMeta: metav1.ObjectMeta{
		Name: "p", Namespace: "ns", UID: "u",
		Labels:      map[string]string{"b": "2", "a": "1\n\"x\""},
		Annotations: map[string]string{"Example.com/Key": "value"},
	},
	Spec: v1.PodSpec{Containers: []v1.Container{{Name: "c", Resources: v1.ResourceRequirements{
		Requests: v1.ResourceList{v1.ResourceCPU: resource.MustParse("100m"), v1.ResourceMemory: resource.MustParse("33Mi"), "hugepages-2Mi": resource.MustParse("4Mi")},
		Limits:   v1.ResourceList{v1.ResourceCPU: resource.MustParse("500m")},
	}}}},
}

func TestField(t *testing.T) {
	for path, want := range map[string]string{
		"metadata.name":                           "p",
		"metadata.namespace":                      "ns",
		"metadata.uid":                            "u",
		"metadata.labels":                         "a=\"1\\n\\\"x\\\"\"\nb=\"2\"",
		"metadata.labels['b']":                    "2",
		"metadata.labels['none']":                 "",
		"metadata.annotations['Example.com/Key']": "value",
	} {
		if got, err := field(testPod, path); err != nil || got != want {
			t.Errorf("%s is %q (%v), want %q", path, got, err, want)
		}
	}
	for path, want := range map[string]string{
		"status.podIP":           "unsupported fieldPath: status.podIP",
		"metadata.name['x']":     `fieldPath "metadata.name['x']" does not support subscript`,
		"metadata.labels['']":    "invalid key subscript in metadata.labels['']: name part must be non-empty;name part must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')",
		"['metadata.labels']":    "unsupported fieldPath: ['metadata.labels']",
		"metadata.labelsSomeKey": "unsupported fieldPath: metadata.labelsSomeKey",
	} {
		if _, err := field(testPod, path); err == nil || err.Error() != want {
			t.Errorf("%s: error %v\nwant %s", path, err, want)
		}
	}
}

func TestAmount(t *testing.T) {
	allocatable := v1.ResourceList{v1.ResourceMemory: resource.MustParse("1Gi"), v1.ResourceEphemeralStorage: resource.MustParse("10Gi"), v1.ResourceCPU: resource.MustParse("8")}
	for _, c := range []struct{ resource, divisor, want string }{
		{"limits.cpu", "", "1"},
		{"limits.cpu", "1m", "500"},
		{"requests.cpu", "", "1"},
		{"requests.cpu", "1m", "100"},
		{"requests.memory", "", "34603008"},
		{"requests.memory", "1Mi", "33"},
		{"requests.memory", "32Mi", "2"},
		{"limits.memory", "1Mi", "1024"},
		{"limits.ephemeral-storage", "1Gi", "10"},
		{"requests.ephemeral-storage", "", "0"},
		{"requests.hugepages-2Mi", "1Mi", "4"},
		{"limits.hugepages-2Mi", "", "0"},
	} {
		sel := &v1.ResourceFieldSelector{ContainerName: "c", Resource: c.resource}
		if c.divisor != "" {
			sel.Divisor = resource.MustParse(c.divisor)
		}
		if got, err := amount(testPod, sel, allocatable); err != nil || got != c.want {
			t.Errorf("%s / %s = %q (%v), want %q", c.resource, c.divisor, got, err, c.want)
		}
	}
	for sel, want := range map[v1.ResourceFieldSelector]string{
		{ContainerName: "none", Resource: "limits.cpu"}: "container none not found",
		{ContainerName: "c", Resource: "limits.gpu"}:    "unsupported container resource : limits.gpu",
		{ContainerName: "c", Resource: "cpu"}:           "unsupported container resource : cpu",
	} {
		if _, err := amount(testPod, &sel, allocatable); err == nil || err.Error() != want {
			t.Errorf("%v: %v, want %s", sel.Resource, err, want)
		}
	}
}
