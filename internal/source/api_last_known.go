package source

import (
	"fmt"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/klog/v2"

	"swiftlet/internal/pod"
)

// AnnotationLastKnown is the annotation with which a pod of a StatefulSet is started without the API
// server, too, if its value is "true".
const AnnotationLastKnown = "swiftlet.dev/last-known"

// Known returns the pods, which are kept for a start without the API server.
func (s *apiStore) Known() []metav1.Object {
	s.mu.Lock()
	defer s.mu.Unlock()
	all := make([]metav1.Object, 0, len(s.pods))
	for _, p := range s.pods {
		all = append(all, p)
	}
	return all
}

// Restore stores the pods of the last contact that may be started without the API server. Its first list
// replaces them.
func (s *apiStore) Restore(objects []any, contact time.Time) {
	pods, started := map[types.NamespacedName]*v1.Pod{}, 0
	age := s.deps.Clock.Since(contact)
	for _, object := range objects {
		p, err := asPod(object)
		if err != nil {
			continue
		}
		if reason := notStarted(p, age); reason != "" {
			s.deps.Log.Warn("pod source: last-known pod waits for the API server", pod.RefOf(p).Attr(), "reason", reason)
			continue
		}
		if !pod.IsMirror(p) {
			started++
			s.deps.Log.Info("pod source: starting last-known pod without the API server", pod.RefOf(p).Attr(), "lastContact", contact)
		}
		s.settle(p, nil)
		pods[keyOf(p)] = p
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.listed {
		return
	}
	s.pods, s.restored = pods, true
	s.changed.Notify()
	if s.deps.Warn != nil {
		s.deps.Warn("LastKnownPods", fmt.Sprintf("The API server did not respond after the start: started %d of %d pods of the last contact at %s",
			started, len(objects), contact.Format(time.RFC3339)))
	}
}

// notStarted returns why a pod of the last contact must not be started without the API server, empty if it
// may. While it may, no other node can have a copy of it unless someone has forced its deletion: the
// control plane deletes pods of an unreachable node only after the time for which they tolerate its taint.
func notStarted(p *v1.Pod, age time.Duration) string {
	switch {
	case pod.IsMirror(p):
		return "" // is not run
	case p.DeletionTimestamp != nil:
		return "it was being deleted"
	case p.Status.Phase == v1.PodSucceeded || p.Status.Phase == v1.PodFailed:
		return "it has finished"
	case ofStatefulSet(p) && p.Annotations[AnnotationLastKnown] != "true":
		return "it belongs to a StatefulSet and has no annotation " + AnnotationLastKnown
	}
	limit, forever := toleratesUnreachable(p)
	switch {
	case forever:
		return ""
	case age < 0:
		return "the clock is before the last contact"
	case age >= limit:
		return "the last contact was " + age.Round(time.Second).String() + " ago, and it tolerates an unreachable node for " + limit.String()
	}
	return ""
}

// ofStatefulSet reports whether two copies of the pod must never run.
func ofStatefulSet(p *v1.Pod) bool {
	owner := metav1.GetControllerOf(p)
	return owner != nil && owner.Kind == "StatefulSet"
}

// toleratesUnreachable returns for how long the control plane leaves the pod on an unreachable node.
func toleratesUnreachable(p *v1.Pod) (limit time.Duration, forever bool) {
	taint := v1.Taint{Key: v1.TaintNodeUnreachable, Effect: v1.TaintEffectNoExecute}
	for i := range p.Spec.Tolerations {
		t := &p.Spec.Tolerations[i]
		if !t.ToleratesTaint(klog.Background(), &taint, false) {
			continue
		}
		if t.TolerationSeconds == nil {
			forever = true
			continue
		}
		own := max(0, pod.Seconds(*t.TolerationSeconds))
		if limit == 0 || own < limit {
			limit = own
		}
		if own == 0 {
			return 0, false
		}
	}
	// As in the control plane: the shortest of the times counts, if there is one.
	return limit, forever && limit == 0
}
