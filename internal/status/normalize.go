package status

import (
	"slices"
	"strings"
	"unicode/utf8"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// maxMessages limits the sum of the termination messages of one pod.
const maxMessages = 12 * 1024

// normalize returns s as the API server would return it, for comparison: whole seconds, sorted
// containers, truncated messages.
func normalize(p *v1.Pod, s v1.PodStatus) v1.PodStatus {
	s = *s.DeepCopy()
	normalizeInPlace(p, &s)
	return s
}

// normalizeInPlace changes the conditions and the statuses of containers of s.
func normalizeInPlace(p *v1.Pod, s *v1.PodStatus) {
	if s.StartTime != nil {
		*s.StartTime = s.StartTime.Rfc3339Copy()
	}
	for i := range s.Conditions {
		seconds(&s.Conditions[i].LastProbeTime)
		seconds(&s.Conditions[i].LastTransitionTime)
	}
	limit := maxMessages / max(1, len(p.Spec.InitContainers)+len(p.Spec.Containers)+len(p.Spec.EphemeralContainers))
	for _, list := range [][]v1.ContainerStatus{s.InitContainerStatuses, s.ContainerStatuses, s.EphemeralContainerStatuses} {
		for i := range list {
			normalizeState(&list[i].State, limit)
			normalizeState(&list[i].LastTerminationState, limit)
		}
	}
	byName := func(a, b v1.ContainerStatus) int { return strings.Compare(a.Name, b.Name) }
	slices.SortStableFunc(s.ContainerStatuses, byName)
	slices.SortStableFunc(s.EphemeralContainerStatuses, byName)
	position := initPositions(p)
	slices.SortStableFunc(s.InitContainerStatuses, func(a, b v1.ContainerStatus) int { return position[a.Name] - position[b.Name] })
}

// initPositions returns the positions of the init containers, from 1: they are sorted as in the spec.
func initPositions(p *v1.Pod) map[string]int {
	position := make(map[string]int, len(p.Spec.InitContainers))
	for i := range p.Spec.InitContainers {
		position[p.Spec.InitContainers[i].Name] = i + 1
	}
	return position
}

func normalizeState(s *v1.ContainerState, maxMessage int) {
	if s.Running != nil {
		seconds(&s.Running.StartedAt)
	}
	if s.Terminated != nil {
		seconds(&s.Terminated.StartedAt)
		seconds(&s.Terminated.FinishedAt)
		s.Terminated.Message = validText(s.Terminated.Message, maxMessage)
	}
}

// validText returns the text as the API server has it after it was sent as JSON, cut between characters:
// containers write termination messages, of any bytes.
func validText(s string, limit int) string {
	if !utf8.ValidString(s) {
		s = string([]rune(s)) // every invalid byte becomes U+FFFD
	}
	if len(s) > limit {
		s = strings.ToValidUTF8(s[:limit], "")
	}
	return s
}

func seconds(t *metav1.Time) { *t = t.Rfc3339Copy() }

// sameStatus compares the fields of two normalized statuses that the kubelet owns.
func sameStatus(a, b v1.PodStatus) bool {
	return equality.Semantic.DeepEqual(ownedPart(a), ownedPart(b))
}

// ownedPart drops the fields of other components and sorts the conditions.
func ownedPart(s v1.PodStatus) v1.PodStatus {
	s.Conditions = slices.DeleteFunc(slices.Clone(s.Conditions), func(c v1.PodCondition) bool { return !isOwned(c.Type) })
	slices.SortFunc(s.Conditions, func(a, b v1.PodCondition) int { return strings.Compare(string(a.Type), string(b.Type)) })
	s.NominatedNodeName = ""
	s.ResourceClaimStatuses = nil
	s.ExtendedResourceClaimStatus = nil
	s.NodeAllocatableResourceClaimStatuses = nil
	return s
}
