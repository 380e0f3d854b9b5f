package standalone

import (
	"testing"
	"time"

	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
)

// Every container gets SIGTERM and at least two seconds to exit.
func TestGraceOfContainer(t *testing.T) {
	for annotation, want := range map[string]time.Duration{
		"45": 45 * time.Second, "2": 2 * time.Second, "1": 2 * time.Second, "0": 2 * time.Second,
		"9223372036854775807": 876000 * time.Hour, "": 30 * time.Second, "-1": 30 * time.Second, "soon": 30 * time.Second,
	} {
		if got := graceOf(&runtimeapi.Container{Annotations: map[string]string{annotationGrace: annotation}}); got != want {
			t.Errorf("annotation %q: grace period %v, want %v", annotation, got, want)
		}
	}
}
