package pod

import (
	"strings"
	"testing"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func TestCheckNames(t *testing.T) {
	for name, c := range map[string]struct {
		edit func(*v1.Pod)
		want string // part of the error
	}{
		"valid":                 {func(*v1.Pod) {}, ""},
		"UID that climbs":       {func(p *v1.Pod) { p.UID = "../escape" }, "metadata.uid"},
		"UID is the parent":     {func(p *v1.Pod) { p.UID = ".." }, "metadata.uid"},
		"no UID":                {func(p *v1.Pod) { p.UID = "" }, "metadata.uid is empty"},
		"UID too long":          {func(p *v1.Pod) { p.UID = "u" + "0123456789abcdef"; p.Name = strings.Repeat("n", 256) }, "metadata.name has 256 bytes"},
		"namespace":             {func(p *v1.Pod) { p.Namespace = "a/b" }, "metadata.namespace"},
		"name":                  {func(p *v1.Pod) { p.Name = "a\x00b" }, "metadata.name"},
		"volume":                {func(p *v1.Pod) { p.Spec.Volumes = []v1.Volume{{Name: "../../v"}} }, "spec.volumes[0].name"},
		"container":             {func(p *v1.Pod) { p.Spec.Containers[0].Name = "../c" }, "container: name"},
		"container has no name": {func(p *v1.Pod) { p.Spec.Containers[0].Name = "" }, "name is empty"},
		"init container":        {func(p *v1.Pod) { p.Spec.InitContainers = []v1.Container{{Name: "."}} }, "container: name"},
		"ephemeral container": {func(p *v1.Pod) {
			p.Spec.EphemeralContainers = []v1.EphemeralContainer{{EphemeralContainerCommon: v1.EphemeralContainerCommon{Name: "a/b"}}}
		}, "container: name"},
	} {
		p := &v1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "p", Namespace: "ns", UID: "0000-1"}, Spec: v1.PodSpec{Containers: []v1.Container{{Name: "c"}}}}
		c.edit(p)
		if err := CheckNames(p); (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %q", name, err, c.want)
		}
	}
}
