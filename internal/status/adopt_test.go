package status

import (
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"swiftlet/internal/pod"
)

// A static pod is synced before its mirror is known. What was derived until then is not written over the
// status that an earlier agent published.
func TestMirrorOfAnEarlierAgentIsAdopted(t *testing.T) {
	container := func(ready bool) []v1.ContainerStatus {
		return []v1.ContainerStatus{{Name: "c", ContainerID: "containerd://id", Ready: ready}}
	}
	since := metav1.Unix(1e9, 0)
	readiness := func(s v1.ConditionStatus, at metav1.Time) []v1.PodCondition {
		return []v1.PodCondition{{Type: v1.PodReady, Status: s, LastTransitionTime: at}}
	}
	for name, sight := range map[string]func(b *bench, static *v1.Pod, derived v1.PodStatus){
		"found before a write": func(b *bench, static *v1.Pod, _ v1.PodStatus) { b.queue.Add(static.UID) },
		"found by a list":      func(b *bench, static *v1.Pod, _ v1.PodStatus) { b.Relisted([]*v1.Pod{static}) },
		"found during a sync":  func(b *bench, static *v1.Pod, derived v1.PodStatus) { b.Set(static, derived) },
		"found during a sync and list": func(b *bench, static *v1.Pod, derived v1.PodStatus) {
			b.Set(static, derived)
			b.Relisted([]*v1.Pod{static})
		},
	} {
		t.Run(name, func(t *testing.T) {
			run(t, func(b *bench) {
				static := aPod("s")
				static.Annotations = map[string]string{pod.AnnotationSource: "file", pod.AnnotationHash: "h"}
				derived := phase(v1.PodRunning)
				derived.ContainerStatuses, derived.Conditions = container(false), readiness(v1.ConditionFalse, metav1.Time{})
				b.Set(static, derived)
				b.expect("")
				time.Sleep(time.Second)

				mirror := aPod("s")
				mirror.UID = "m"
				mirror.Annotations = map[string]string{pod.AnnotationMirror: "h"}
				mirror.Status = phase(v1.PodRunning)
				mirror.Status.StartTime = &since
				mirror.Status.ContainerStatuses, mirror.Status.Conditions = container(true), readiness(v1.ConditionTrue, since)
				b.mirrors["s"] = mirror
				sight(b, static, derived)
				b.expect("")
				if got, known := b.Published(static); !known || !got.ContainerStatuses[0].Ready {
					b.Error("the published status is not that of the mirror")
				}

				derived.ContainerStatuses, derived.Conditions = container(true), readiness(v1.ConditionTrue, metav1.Time{})
				got := b.Set(static, derived)
				b.expect("")
				if !got.StartTime.Equal(&since) || !got.Conditions[0].LastTransitionTime.Equal(&since) {
					b.Errorf("started %v, ready since %v, want the times of the mirror", got.StartTime, got.Conditions[0].LastTransitionTime)
				}
				derived.ContainerStatuses, derived.Conditions = container(false), readiness(v1.ConditionFalse, metav1.Time{})
				b.Set(static, derived)
				b.expect("s m Running")
			})
		})
	}
}

// The mirror of an earlier version of the pod is replaced; its status is not that of the pod. That version
// may have ended, and the new one runs.
func TestMirrorOfAnEarlierVersion(t *testing.T) {
	for name, knownFirst := range map[string]bool{"known first": true, "known later": false} {
		t.Run(name, func(t *testing.T) {
			run(t, func(b *bench) {
				static := aPod("s")
				static.Annotations = map[string]string{pod.AnnotationSource: "file", pod.AnnotationHash: "old"}
				earlier := mirrorOf(static, "m1")
				earlier.Status = phase(v1.PodFailed)
				earlier.Status.ContainerStatuses = []v1.ContainerStatus{{Name: "c", Ready: true}}
				static.Annotations[pod.AnnotationHash] = "new"
				if knownFirst {
					b.mirrors["s"] = earlier
				}
				b.Set(static, phase(v1.PodPending))
				b.mirrors["s"] = earlier
				b.Reconcile(static)
				b.expect("")
				if got, _ := b.Published(static); got.Phase != "" {
					b.Errorf("the published status is %v, want none", got)
				}
				b.mirrors["s"] = mirrorOf(static, "m2")
				b.Reconcile(static)
				b.expect("s m2 Pending")
			})
		})
	}
}

// A static pod that exceeded its deadline runs again when the agent starts, whether the pod or its mirror is
// known first.
func TestStaticPodWithAnEndedMirrorRunsAgain(t *testing.T) {
	for name, knownFirst := range map[string]bool{"known first": true, "known later": false} {
		t.Run(name, func(t *testing.T) {
			run(t, func(b *bench) {
				static := aPod("s")
				static.Annotations = map[string]string{pod.AnnotationSource: "file", pod.AnnotationHash: "h"}
				ended := mirrorOf(static, "m")
				ended.Status = phase(v1.PodFailed)
				ended.Status.ContainerStatuses = []v1.ContainerStatus{{Name: "c"}}
				if knownFirst {
					b.mirrors["s"] = ended
				}
				if got, _ := b.Published(static); got.Phase != "" {
					b.Errorf("the published status is %v, want none", got)
				}
				if got := b.Set(static, phase(v1.PodRunning)); got.Phase != v1.PodRunning {
					b.Errorf("the phase is %s", got.Phase)
				}
				b.mirrors["s"] = ended
				b.Reconcile(static)
				b.expect("s m Running")
			})
		})
	}
}
