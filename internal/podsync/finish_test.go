package podsync

import (
	"context"
	"errors"
	"testing"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"swiftlet/internal/pod"
)

var errUnavailable = errors.New("connection refused")

// unavailable fails to ensure mirrors.
type unavailable struct{ Mirrors }

func (unavailable) Ensure(context.Context, *v1.Pod, *v1.Pod) (bool, error) {
	return false, errUnavailable
}

// The mirror of a pod that has ended is ensured until that succeeds, for as long as the pod is desired.
func TestKeepMirror(t *testing.T) {
	static := &v1.Pod{ObjectMeta: metav1.ObjectMeta{Annotations: map[string]string{pod.AnnotationSource: "file"}}}
	for name, c := range map[string]struct {
		work pod.Work
		want error
	}{
		"ended":             {pod.Work{Pod: static}, errUnavailable},
		"manifest removed":  {pod.Work{Pod: static, Unwanted: true}, nil},
		"rejected":          {pod.Work{Pod: static, Failure: &pod.Failure{Rejected: true}}, nil},
		"of the API server": {pod.Work{Pod: &v1.Pod{}}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			s := &Steps{deps: Deps{Mirrors: unavailable{}}}
			if err := s.keepMirror(t.Context(), c.work); !errors.Is(err, c.want) {
				t.Errorf("got %v, want %v", err, c.want)
			}
		})
	}
}
